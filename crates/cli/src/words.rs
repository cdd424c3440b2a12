//! What the console says, by message id, in English and Chinese. Errors stay English, with a stable code.

/// The language of the console: `LATHE_LANG`, else the locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    pub(crate) fn find() -> Self {
        let set = ["LATHE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        match set {
            Some(value) if value.to_ascii_lowercase().starts_with("zh") => Language::Chinese,
            Some(_) | None => Language::English,
        }
    }
}

impl Say {
    /// The word after a number of lines that are not shown.
    pub(crate) fn more_lines(count: usize) -> Self {
        if count == 1 { Say::OneMoreLine } else { Say::MoreLines }
    }

    /// The word after a number of steps.
    pub(crate) fn steps(count: u64) -> Self {
        if count == 1 { Say::OneStep } else { Say::Steps }
    }
}

macro_rules! messages {
    ($($id:ident: $english:literal, $chinese:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Say {
            $($id,)*
        }

        impl Say {
            pub(crate) fn text(self, language: Language) -> &'static str {
                match (self, language) {
                    $((Say::$id, Language::English) => $english, (Say::$id, Language::Chinese) => $chinese,)*
                }
            }

            #[cfg(test)]
            const ALL: &'static [Say] = &[$(Say::$id,)*];
        }
    };
}

messages! {
    Task: "task", "任务";
    Step: "step", "步骤";
    Model: "model", "模型";
    Mode: "mode", "模式";
    Sandbox: "sandbox off (level 0)", "沙箱 关闭（0 级）";
    AtMost: "at most", "最多";
    Folder: "folder", "文件夹";
    Steps: "steps", "步";
    OneStep: "step", "步";
    ModeHint: "There is no sandbox in this version, so only what the rules allow (reading, building, testing) is done in this mode; `--mode full-auto` lets it work.",
        "此版本还没有沙箱，因此该模式下只执行规则允许的操作（读取、构建、测试）；使用 `--mode full-auto` 允许执行。";
    ModeOfMustPatch: " because of --must-patch: whatever the task needs is done without asking; `--mode default` holds it back",
        "（因 --must-patch：任务所需的操作不经询问即执行；使用 `--mode default` 加以限制）";
    RememberedFacts: "facts remembered for every project", "为所有项目记住的事实";
    NewestFrom: "newest from", "最新来自";
    Thinking: "thinking", "思考";
    MoreLines: "more lines", "行未显示";
    OneMoreLine: "more line", "行未显示";
    Denied: "denied", "已拒绝";
    Failed: "failed", "失败";
    Drift: "the replay drifted", "回放出现偏差";
    Recorded: "recorded", "录制";
    Now: "now", "当前";
    Retry: "asking the model again in", "将重新请求模型，等待";
    Done: "done", "完成";
    Answered: "answered", "已回答";
    NotDone: "not done", "未完成";
    ModelUnavailable: "the model is not available", "模型不可用";
    StepsUsedUp: "steps used up", "步数已用完";
    BudgetUsedUp: "budget used up", "预算已用完";
    Warning: "warning", "警告";
    DeniedByPolicy: "denied by policy", "被策略拒绝";
    DiskFull: "the disk is full", "磁盘已满";
    Cancelled: "cancelled", "已取消";
    TokensIn: "tokens in", "输入 token";
    TokensOut: "out", "输出";
    Changed: "changed", "改动";
    NothingChanged: "no file was changed", "没有文件被改动";
    NothingBegun: "the model gave no answer, so nothing was done", "模型没有给出回答，什么也没有做";
    KeptAway: "taken away, kept in the quarantine", "已删除，保存在隔离区";
    Session: "session", "会话";
    LookAgain: "look at it again", "再次查看";
    GoOn: "go on with it", "继续";
    Stopping: "stopping; once more to end at once", "正在停止；再按一次立即结束";
    DemoIntro: "A real run without a key and without a network: the model is recorded, the tools are real.",
        "无需密钥和网络的真实运行：模型为录制，工具为真实执行。";
    DemoFolder: "sample project", "示例项目";
    DemoTest: "its tests now", "现在的测试结果";
    DemoNext: "With a model of your own", "使用你自己的模型";
    NoSessions: "No sessions yet. Begin with `lathe run` or `lathe demo`.", "还没有会话。请用 `lathe run` 或 `lathe demo` 开始。";
    NothingToResume: "The last task of this session is finished. Give it another one", "该会话的上一个任务已完成，可以给它一个新任务";
    NoTaskYet: "This session has no task yet. Give it one", "该会话还没有任务，请给它一个任务";
    StillRunning: "still running; follow it", "仍在运行；查看进度";
    DeniedCall: "call was denied by policy; see above for the rule", "次调用被策略拒绝；规则见上文";
    DeniedCalls: "calls were denied by policy; see above for the rule", "次调用被策略拒绝；规则见上文";
    DeniedByMode: ", and --mode full-auto to allow changes", "，使用 --mode full-auto 允许改动";
    SetAside: "Lathe set aside what a line left for git to run later", "Lathe 已移开命令为 git 留下的、之后会运行的内容";
    SetAsideNow: "now", "现为";
    RefusedByYou: "questions were answered with no by you", "个询问被你拒绝";
    RefusedOnceByYou: "question was answered with no by you", "个询问被你拒绝";
    NoneMatches: "No session matches.", "没有匹配的会话。";
    Damaged: "damaged", "已损坏";
    See: "see", "参见";
    StateNew: "new", "新建";
    StateRunning: "running", "运行中";
    StateCompleted: "completed", "已完成";
    StateError: "error", "出错";
    StateCancelled: "cancelled", "已取消";
    StateInterrupted: "interrupted", "已中断";
    AskTask: "Task", "任务";
    NotUndoable: "cannot be taken back", "无法撤回";
    InSession: "session", "会话";
    RedoHint: "brings it back.", "可以恢复。";
    TookBack: "Taken back", "已撤回";
    TookNothing: "Nothing is taken back", "没有撤回任何内容";
    WouldTakeBack: "Would take back", "将会撤回";
    NoFiles: "no file is changed", "没有文件变动";
    StepsLeft: "Steps of the conversation left behind", "对话中被放弃的步骤";
    LeftAlone: "Left as they are:", "保持原样：";
    MayBeOthers: "Not named by the line that ran at that time, so somebody else may have written them:", "运行的命令没有提到这些文件，可能是他人写入的：";
    OthersWrote: "Written by somebody else while a line ran, and left to them:", "在命令运行期间由他人写入，保持不动：";
    OthersChanged: "changed by somebody else while this ran, and no part of it:", "运行期间由他人改动，不属于本次调用：";
    StaysWhole: "It leaves these as they are now:", "以下内容保持现状，不会再被移走：";
    UndoHint: "takes this back.", "可以撤回这一操作。";
    AskChoice: "Number, or your own words", "编号，或用自己的话";
    AskYesNo: "yes or no", "是或否";
    AskText: "Answer", "回答";
    MayThis: "May this be done?", "是否允许？";
    AskApproval: "[y]es once, [s]ession, [a]lways, [n]o (a reason may follow)", "[y] 仅此一次，[s] 本次会话，[a] 始终，[n] 拒绝（可附理由）";
    AskShowAll: "v = show the {} lines that are not shown", "v = 显示未显示的 {} 行";
    AskShowOne: "v = show the one line that is not shown", "v = 显示未显示的 1 行";
    AskEdit: "[e]dit it first", "[e] 先修改";
    NewText: "New text", "新的内容";
    NotBack: "`lathe undo` takes back what it changes in the workspace, except files over 64 MB, pipes, sockets, devices, times of files, folders that can be made again such as `node_modules`, and anything outside of the workspace", "`lathe undo` 可撤回它在工作区内的更改，但不包括：64 MB 以上的文件、管道、套接字、设备、文件时间、可重新生成的文件夹（如 `node_modules`）以及工作区之外的一切";
    AskOnce: "[y]es once, [n]o (a reason may follow)", "[y] 仅此一次，[n] 拒绝（可附理由）";
    Remembered: "session and always would allow", "s 与 a 将允许";
    NotTrusted: "not used until you trust it", "在你信任之前不会使用";
    SeeAndTrust: "See it and trust it", "查看并信任";
    ThisOnce: "this once", "仅此一次";
    TrustThese: "This project brings along what would be told to the model or run. Trust it?", "该项目带有将告知模型或被执行的内容。是否信任？";
    AskTrust: "[y]es, [o]nce, [n]o, [s]how all, programs too", "[y] 信任，[o] 仅此一次，[n] 不信任，[s] 全部显示（含程序内容）";
    AskTrustThese: "Trust these? [y]es, [n]o", "信任这些？[y] 是，[n] 否";
    ConnectionLost: "the connection is lost, trying again", "连接已断开，正在重试";
    Reconnected: "connected again", "已重新连接";
    Cancelling: "cancelling; Ctrl-C once more leaves", "正在取消；再按一次 Ctrl-C 退出";
    Parked: "the run was interrupted and waits to be resumed", "该运行已中断，等待恢复";
    AnsweredElsewhere: "somebody else has answered", "已由他人回答";
    NothingAsked: "is no answer: nothing had been asked when it came", "不是回答：收到时尚无提问";
    LeftRunning: "left; the run goes on. Come back to it with", "已离开；运行仍在继续。返回请用";
    LeftEarly: "left before the server had named a session", "在服务器给出会话之前已离开";
    WaitsForPerson: "it waits for an answer from a terminal or the page", "等待终端或页面上的回答";
    OnceMoreToLeave: "Ctrl-C once more leaves; so does `exit`", "再按一次 Ctrl-C 退出，也可输入 exit";
    Goodbye: "Goodbye!", "再见！";
    InteractiveHelp: "Give a task, or one of these words:\n  help    this text\n  status  model, mode, session\n  clear   clear the screen\n  exit, quit   leave; the session stays", "输入任务，或以下命令之一：\n  help    显示本帮助\n  status  模型、模式、会话\n  clear   清屏\n  exit, quit   退出；会话会保留";
    Provider: "provider", "提供方";
    Tools: "tools", "工具";
    Tasks: "tasks", "任务数";
    Interrupted: "interrupted before it ended", "在结束前被中断";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_there_in_both_languages() {
        for say in Say::ALL {
            assert!(
                !say.text(Language::English).is_empty() && !say.text(Language::Chinese).is_empty(),
                "{say:?}"
            );
        }
        assert!(Say::ALL.iter().filter(|say| say.text(Language::Chinese).is_ascii()).count() == 0);
    }
}
