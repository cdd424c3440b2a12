//! The message catalogue of all surfaces, in English and Chinese next to each other.
//!
//! A message is named by its id. A fixed text is a [`Say`]; a text with values is a [`Tell`], whose members are the
//! values with their types. Where two surfaces word the same thing differently, each has an id of its own. Errors
//! stay English, with a stable code, and are not here.

use lathe_protocol::{Ending, SessionState, StepNo};

/// The language of a surface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// The language that a locale (`zh_CN.UTF-8`) or a list of languages (`zh-CN,en`) begins with.
    pub fn of(name: &str) -> Self {
        match name.get(..2) {
            Some(first) if first.eq_ignore_ascii_case("zh") => Language::Chinese,
            Some(_) | None => Language::English,
        }
    }

    /// The tag of the `lang` attribute.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh-CN",
        }
    }

    /// The tag without a region.
    pub fn primary_tag(self) -> &'static str {
        self.tag().get(..2).unwrap_or_default()
    }
}

macro_rules! messages {
    ($($id:ident: $english:literal, $chinese:literal;)*) => {
        /// A message without values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Say {
            $($id,)*
        }

        impl Say {
            pub fn text(self, language: Language) -> &'static str {
                match (self, language) {
                    $((Say::$id, Language::English) => $english, (Say::$id, Language::Chinese) => $chinese,)*
                }
            }

            #[cfg(test)]
            const ALL: &'static [Say] = &[$(Say::$id,)*];
        }
    };
}

macro_rules! sentences {
    ($($id:ident { $($name:ident: $type:ty),* }: $english:literal, $chinese:literal;)*) => {
        /// A message that holds something.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Tell<'a> {
            $($id { $($name: $type),* },)*
        }

        impl Tell<'_> {
            pub fn text(&self, language: Language) -> String {
                match (self, language) {
                    $(
                        (Tell::$id { $($name),* }, Language::English) => format!($english),
                        (Tell::$id { $($name),* }, Language::Chinese) => format!($chinese),
                    )*
                }
            }
        }
    };
}

impl Say {
    /// The word after a number of lines that are not shown.
    pub fn more_lines(count: usize) -> Self {
        if count == 1 { Say::OneMoreLine } else { Say::MoreLines }
    }

    /// The word after a number of steps.
    pub fn steps(count: u64) -> Self {
        if count == 1 { Say::OneStep } else { Say::Steps }
    }

    /// The word for the state of a session.
    pub fn state(state: SessionState) -> Self {
        match state {
            SessionState::New => Say::StateNew,
            SessionState::Running => Say::StateRunning,
            SessionState::Completed => Say::StateCompleted,
            SessionState::Error => Say::StateError,
            SessionState::Cancelled => Say::StateCancelled,
            SessionState::Interrupted => Say::StateInterrupted,
        }
    }

    /// The words for an ending.
    pub fn ending(ending: Ending) -> Self {
        match ending {
            Ending::Done => Say::Done,
            Ending::Answered => Say::Answered,
            Ending::Failed => Say::NotDone,
            Ending::ModelUnavailable => Say::ModelUnavailable,
            Ending::StepsUsedUp => Say::StepsUsedUp,
            Ending::BudgetUsedUp => Say::BudgetUsedUp,
            Ending::Denied => Say::DeniedByPolicy,
            Ending::DiskFull => Say::DiskFull,
            Ending::Cancelled => Say::Cancelled,
        }
    }
}

messages! {
    // Sessions, on the console and wherever they are listed.
    Task: "task", "任务";
    Step: "step", "步骤";
    Model: "model", "模型";
    Mode: "mode", "模式";
    AtMost: "at most", "最多";
    Folder: "folder", "文件夹";
    Steps: "steps", "步";
    OneStep: "step", "步";
    ModeHint: "This version has no sandbox, so this mode runs only what the rules allow (reading, building, testing); `--mode full-auto` lets it work.",
        "此版本没有沙箱，因此该模式只执行规则允许的操作（读取、构建、测试）；使用 `--mode full-auto` 可放开限制。";
    ModeOfMustPatch: " because of --must-patch: whatever the task needs is done without asking; `--mode default` prevents that",
        "（因 --must-patch：任务所需的操作不经询问即执行；使用 `--mode default` 加以限制）";
    RememberedFacts: "facts remembered for every project", "为所有项目记住的事实";
    NewestFrom: "newest from", "最新来自";
    Thinking: "thinking", "思考";
    MoreLines: "more lines", "行未显示";
    OneMoreLine: "more line", "行未显示";
    Denied: "denied", "已拒绝";
    Failed: "failed", "失败";
    Recorded: "recorded", "录制";
    Now: "now", "当前";
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
    TokensIn: "tokens in", "输入词元";
    TokensOut: "out", "输出";
    Changed: "changed", "改动";
    NothingChanged: "no file was changed", "没有文件被改动";
    NothingBegun: "the model gave no answer, so nothing was done", "模型没有回答，因此未做任何操作";
    KeptAway: "removed, kept in the quarantine", "已移除，保存在隔离区";
    Session: "session", "会话";
    Stopping: "stopping; press again to end at once", "正在停止；再按一次立即结束";
    DemoIntro: "A real run without a key or network: the model is recorded, the tools are real.",
        "真实的运行，无需密钥和网络：模型的回答是录制的，工具是真实的。";
    DemoFolder: "sample project", "示例项目";
    DemoTest: "its tests now", "现在的测试结果";
    DemoNext: "With a model of your own", "使用你自己的模型";
    NoSessions: "No sessions yet. Start one with `lathe run` or `lathe demo`.", "还没有会话。请用 `lathe run` 或 `lathe demo` 开始。";
    NothingToResume: "The last task of this session is finished. Give it another one", "该会话的上一个任务已完成，请给它新任务";
    NoTaskYet: "This session has no task yet. Give it one", "该会话还没有任务，请给它任务";
    DeniedByMode: ", and --mode full-auto to allow changes", "；使用 --mode full-auto 可允许改动";
    SetAside: "Lathe set aside what a line left for git to run later", "Lathe 已移开一行命令留给 git 日后运行的内容";
    SetAsideNow: "now", "现为";
    NoneMatches: "No session matches.", "没有匹配的会话。";
    Damaged: "damaged", "已损坏";
    See: "see", "参见";
    StateNew: "new", "新建";
    StateRunning: "running", "运行中";
    StateCompleted: "completed", "已完成";
    StateError: "error", "出错";
    StateCancelled: "cancelled", "已取消";
    StateInterrupted: "interrupted", "已中断";
    NotUndoable: "cannot be taken back", "无法撤销";
    RedoHint: "brings it back.", "可以恢复。";
    TookBack: "Undone", "已撤销";
    TookNothing: "Nothing was undone", "没有撤销任何内容";
    WouldTakeBack: "Would undo", "将会撤销";
    NoFiles: "no file is changed", "没有文件变动";
    StepsLeft: "Steps of the conversation dropped", "对话中放弃的步骤";
    LeftAlone: "Left as they are:", "保持原样：";
    MayBeOthers: "Not named by the line that ran at that time, so another program or user may have written them:",
        "当时运行的那一行没有提到这些文件，可能由其他程序或用户写入：";
    OthersWrote: "Written by another program or user while a line ran, and left as they are:", "一行命令运行期间由其他程序或用户写入，保持原样：";
    OthersChanged: "changed by another program or user while this ran, not by this call:", "运行期间由其他程序或用户改动，不属于本次调用：";
    StaysWhole: "It keeps these as they are now:", "以下内容保持现状，不会再被移走：";
    UndoHint: "undoes this.", "可以撤销这一操作。";
    AskChoice: "Number, or your own words", "编号，或自行填写";
    AskYesNo: "yes or no", "是或否";
    AskText: "Answer", "回答";
    MayThis: "Allow this?", "是否允许？";
    AskApproval: "[y]es once, [s]ession, [a]lways, [n]o (a reason may follow)",
        "[y] 仅此一次，[s] 本次会话，[a] 始终，[n] 拒绝（可附理由）";
    AskShowOne: "v = show the hidden line", "v = 显示隐藏的 1 行";
    AskEdit: "[e]dit it first", "[e] 先修改";
    NewText: "New text", "新的内容";
    NotBack: "`lathe undo` restores what it changes in the workspace, except files over 64 MB, pipes, sockets, devices, times of files, folders that can be made again such as `node_modules`, and anything outside of the workspace",
        "`lathe undo` 可撤销它在工作区内的改动，但不包括：64 MB 以上的文件、管道、套接字、设备、文件时间、可重新生成的文件夹（如 `node_modules`）以及工作区之外的一切";
    AskOnce: "[y]es once, [n]o (a reason may follow)", "[y] 仅此一次，[n] 拒绝（可附理由）";
    Remembered: "session and always would allow", "s 与 a 将允许";
    NotTrusted: "not used until you trust it", "在你信任之前不会使用";
    SeeAndTrust: "Look at it and trust it", "查看并信任";
    ThisOnce: "this once", "仅此一次";
    TrustThese: "This project contains instructions or programs that would be given to the model or run. Trust them?",
        "该项目包含会交给模型的说明或会被运行的程序。是否信任？";
    AskTrust: "[y]es, [o]nce, [n]o, [s]how all, programs too", "[y] 信任，[o] 仅此一次，[n] 不信任，[s] 全部显示（含程序内容）";
    AskTrustThese: "Trust these? [y]es, [n]o", "信任这些？[y] 是，[n] 否";
    Reconnected: "reconnected", "已重新连接";
    Cancelling: "cancelling; press Ctrl-C again to leave", "正在取消；再按一次 Ctrl-C 离开";
    Parked: "the run was interrupted and waits to be resumed", "运行已中断，等待恢复";
    AnsweredElsewhere: "already answered from another terminal or page", "已在其他终端或页面回答";
    LeftEarly: "left before the server named a session", "在服务器给出会话之前已离开";
    WaitsForPerson: "it waits for an answer from a terminal or the page", "正在等待终端或页面上的回答";
    OnceMoreToLeave: "press Ctrl-C again to leave, or type `exit`", "再按一次 Ctrl-C 离开，或输入 exit";
    Goodbye: "Goodbye!", "再见！";
    InteractiveHelp: "Enter a task, or one of these words:\n  help    this text\n  status  model, mode, session\n  clear   clear the screen\n  exit, quit   leave; the session is kept",
        "输入任务，或以下命令之一：\n  help    显示本帮助\n  status  模型、模式、会话\n  clear   清屏\n  exit, quit   离开；会话会保留";
    Provider: "provider", "提供方";
    Tools: "tools", "工具";
    Tasks: "tasks", "任务数";
    Interrupted: "interrupted before it ended", "在结束前被中断";
    TaskLabel: "Task", "任务";
    SandboxOff: "sandbox off (level 0)", "沙箱关闭（0 级）";
    DeniedCall: "1 call was denied by policy; see above for the rule", "1 次调用被策略拒绝；规则见上文";
    RefusedOnce: "you answered 1 question with no", "你拒绝了 1 个询问";
    // The page of a session, as it is exported.
    Report: "Session report", "会话报告";
    NoTask: "No task yet", "尚无任务";
    Workspace: "Workspace", "工作区";
    PageModel: "Model", "模型";
    PageMode: "Mode", "模式";
    PageSandbox: "Sandbox", "沙箱";
    Toolset: "Toolset", "工具集";
    Began: "Began", "开始于";
    ForkedFrom: "Forked from", "分叉自";
    Version: "Lathe", "Lathe";
    Duration: "Duration", "用时";
    PageSteps: "Steps", "步骤";
    StepsLower: "steps", "个步骤";
    PageStep: "Step", "步骤";
    Calls: "Calls", "调用";
    FailedLower: "failed", "次失败";
    InputTokens: "Input tokens", "输入词元";
    OutputTokens: "Output tokens", "输出词元";
    Cached: "cached", "命中缓存";
    Reasoning: "reasoning", "推理";
    Cost: "Cost", "费用";
    Unknown: "unknown", "未知";
    PriceUnknown: "No known price for", "没有已知价格：";
    PricesAsOf: "by list prices", "按标价计算";
    Result: "Result", "结果";
    Run: "Run", "运行";
    Time: "Time", "时间";
    TimeAbout: "Time spent, step by step. Waiting between steps is left out.", "各步骤所用时间；步骤之间的等待不计。";
    ToolTime: "Tools", "工具";
    Tokens: "Tokens and cost by step", "每步词元与费用";
    TokensAbout: "Each column is one step. Select it to go there.", "每一列是一个步骤，点击可跳转。";
    FreshInput: "new input", "新输入";
    CachedInput: "cached input", "缓存输入";
    Output: "output", "输出";
    PageChanged: "Changed files", "改动的文件";
    NoChanges: "No file was changed.", "没有改动文件。";
    Created: "created", "新建";
    Deleted: "deleted", "删除";
    InSteps: "in step", "步骤";
    OpenAll: "Open all", "全部展开";
    CloseAll: "Close all", "全部收起";
    PageThinking: "Thinking", "思考";
    Arguments: "Arguments", "参数";
    Malformed: "not JSON", "非 JSON";
    Error: "Error", "错误";
    NoResult: "No result yet.", "尚无结果。";
    Empty: "(nothing)", "（空）";
    ShowAll: "Show all", "显示全部";
    PageMoreLines: "more lines", "行";
    MoreText: "the rest", "其余部分";
    ShownToModel: "The model was shown", "模型看到";
    OfBytes: "bytes of", "字节，共";
    Allowed: "allowed", "已允许";
    Asked: "asked", "需询问";
    Approved: "approved", "已批准";
    Exit: "exit", "退出码";
    NotRun: "not run", "未运行";
    Reflection: "Sent to the model after failed calls", "调用失败后发给模型";
    Reminder: "Sent to the model after an answer without calls", "模型未发起调用时发给它";
    Binary: "Binary content differs.", "二进制内容不同。";
    ContentGone: "The content is no longer stored.", "内容已不在存储中。";
    TooLarge: "Too large to compare here.", "太大，此处不比较。";
    Unanswered: "The model has not answered yet.", "模型尚未回答。";
    Running: "Not finished", "未结束";
    EndDone: "Done", "完成";
    EndAnswered: "Answered", "已回答";
    EndFailed: "Failed", "失败";
    EndModel: "Model unavailable", "模型不可用";
    EndSteps: "Steps used up", "步数用完";
    EndBudget: "Budget used up", "预算用完";
    EndDenied: "Denied by policy", "被策略拒绝";
    EndDisk: "Disk full", "磁盘已满";
    EndCancelled: "Cancelled", "已取消";
    StateThinking: "thinking", "思考中";
    StateCalling: "calling tools", "调用工具中";
    StateReflecting: "reflecting", "反思中";
    PageStateError: "error", "出错";
    Contains: "This page holds everything it shows and requests nothing from the network.", "本页包含所显示的全部内容，不发出任何网络请求。";
    // The server's status page.
    StatusSessions: "Sessions", "会话";
    StatusNone: "No session has worked in the folders of this server yet.", "此服务器的文件夹中还没有会话。";
    StatusState: "State", "状态";
    StatusSteps: "Steps", "步数";
    StatusFolder: "Folder", "文件夹";
    StatusUpdated: "Last change", "最后更新";
    StatusUntitled: "(no task yet)", "（尚无任务）";
    StatusWatching: "watching", "人在看";
    StatusCancel: "Cancel", "取消";
    StatusAllow: "Allow once", "允许一次";
    StatusDeny: "Deny", "拒绝";
}

sentences! {
    Retry { seconds: f64, reason: &'a str }: "asking the model again in {seconds:.1} s: {reason}",
        "{seconds:.1} 秒后重新请求模型：{reason}";
    Drifted { step: StepNo, place: &'a str }: "the replay drifted: step {step}, {place}",
        "回放出现偏差：第 {step} 步，{place}";
    DeniedCalls { count: usize }: "{count} calls were denied by policy; see above for the rule",
        "{count} 次调用被策略拒绝；规则见上文";
    Refused { count: u32 }: "you answered {count} questions with no", "你拒绝了 {count} 个询问";
    AskShowAll { lines: usize }: "v = show the {lines} hidden lines", "v = 显示隐藏的 {lines} 行";
    ShowHint { id: &'a str }: "show it again: lathe show {id}", "再次查看：lathe show {id}";
    ResumeHint { id: &'a str }: "resume it: lathe resume {id}", "恢复运行：lathe resume {id}";
    StillRunning { id: &'a str }: "still running; follow it: lathe watch {id}", "仍在运行；查看进度：lathe watch {id}";
    LeftRunning { id: &'a str }: "left; the run continues. Return to it with: lathe connect URL --session {id}",
        "已离开；运行仍在继续。返回请用：lathe connect URL --session {id}";
    NothingAsked { line: &'a str }: "`{line}` is not taken as an answer: it came before the question",
        "`{line}` 不算回答：输入时尚未提问";
    ConnectionLost { reason: &'a str }: "connection lost, trying again ({reason})", "连接已断开，正在重试（{reason}）";
    SignIn { command: &'a str }: "Open this page with the address that {command} printed: it holds the token.",
        "请使用 {command} 打印的地址打开此页面：其中含有令牌。";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_there_in_both_languages_and_holds_no_markup() {
        for say in Say::ALL {
            for language in [Language::English, Language::Chinese] {
                let text = say.text(language);
                assert!(!text.trim().is_empty() && !text.contains(['<', '>', '&', '"']), "{say:?}");
            }
        }
        // The name of the program is the same everywhere.
        let untranslated = Say::ALL.iter().filter(|say| say.text(Language::Chinese).is_ascii());
        assert_eq!(untranslated.collect::<Vec<_>>(), [&Say::Version]);
    }

    #[test]
    fn what_a_message_holds_stands_in_both_languages() {
        let retry = Tell::Retry { seconds: 1.25, reason: "slow" };
        assert_eq!(retry.text(Language::English), "asking the model again in 1.2 s: slow");
        for language in [Language::English, Language::Chinese] {
            assert!(Tell::ResumeHint { id: "a-1" }.text(language).ends_with(": lathe resume a-1"));
            assert!(Tell::DeniedCalls { count: 3 }.text(language).starts_with("3 "));
        }
    }

    #[test]
    fn a_language_is_known_by_how_its_name_begins() {
        for (name, language) in [
            ("zh_CN.UTF-8", Language::Chinese),
            ("ZH", Language::Chinese),
            ("zh-CN,en;q=0.5", Language::Chinese),
            ("en_US", Language::English),
            ("C", Language::English),
            ("", Language::English),
            ("é", Language::English),
        ] {
            assert_eq!(Language::of(name), language, "{name}");
        }
        assert_eq!(["zh", "en"], [Language::Chinese, Language::English].map(Language::primary_tag));
    }
}
