//! The lines of a session on a console: its steps, its closing, its questions.

macro_rules! console_messages {
    ([$next:ident $($rest:ident)*] { $($says:tt)* } { $($tells:tt)* }) => {
        $next! {
            [$($rest)*]
            {
                $($says)*
                // The first lines of a session.
                Model: "model", "模型";
                Mode: "mode", "模式";
                AtMost: "at most", "最多";
                Folder: "folder", "文件夹";
                SandboxOff: "sandbox off (level 0)", "沙箱关闭（0 级）";
                ModeHint: "This mode does only what the rules allow (reading, building, testing); `--mode full-auto` lets it work.",
                    "该模式只执行规则允许的操作（读取、构建、测试）；如需解除此限制，请使用 `--mode full-auto`。";
                ModeOfMustPatch: " because of --must-patch: whatever the task needs is done without asking; `--mode default` prevents that",
                    "（由于 --must-patch：任务所需的操作无需询问即可执行；使用 `--mode default` 可避免这一点）";
                NotBack: "`lathe undo` restores what it changes in the workspace, except files over 64 MB, pipes, sockets, devices, times of files, folders that can be made again such as `node_modules`, and anything outside of the workspace",
                    "`lathe undo` 可撤销它在工作区内的改动，但不包括：64 MB 以上的文件、管道、套接字、设备、文件时间、可重新生成的文件夹（如 `node_modules`）以及工作区之外的一切";
                // Steps and calls.
                Task: "task", "任务";
                Step: "step", "步骤";
                Thinking: "thinking", "思考";
                Denied: "denied", "已拒绝";
                Failed: "failed", "失败";
                Exit: "exit", "退出码";
                Warning: "warning", "警告";
                Recorded: "recorded", "录制";
                Now: "now", "当前";
                NotUndoable: "cannot be undone", "无法撤销";
                OthersChanged: "changed by another program or user while this ran, not by this call:", "运行期间由其他程序或用户改动，不属于本次调用：";
                // The ending of a run.
                Done: "done", "完成";
                Answered: "answered", "已回答";
                NotDone: "not done", "未完成";
                ModelUnavailable: "the model is not available", "模型不可用";
                StepsUsedUp: "steps used up", "步数已用完";
                BudgetUsedUp: "budget used up", "预算已用完";
                DeniedByPolicy: "denied by policy", "被策略拒绝";
                DiskFull: "the disk is full", "磁盘已满";
                Cancelled: "cancelled", "已取消";
                Interrupted: "interrupted before it ended", "在结束前被中断";
                Changed: "changed", "改动";
                NothingChanged: "no file was changed", "没有改动任何文件";
                NothingBegun: "the model gave no answer, so nothing was done", "模型没有回答，因此未做任何操作";
                InQuarantine: "removed, kept in the quarantine", "已移除，保存在隔离区";
                SetAside: "Lathe set aside what a line left for git to run later", "Lathe 已将命令行留给 git 日后运行的文件改名搁置";
                SetAsideNow: "now", "现名";
                DeniedCall: "1 call was denied by policy; see above for the rule", "1 次调用被策略拒绝；规则见上文";
                DeniedByMode: ", and --mode full-auto to allow changes", "；使用 --mode full-auto 可允许改动";
                RefusedOnce: "you answered 1 question with no", "你拒绝了 1 次询问";
                Session: "session", "会话";
                Stopping: "stopping; press again to end at once", "正在停止；再按一次立即结束";
                // The provider's cache.
                CacheOtherModel: "another model was asked", "请求了另一个模型";
                CacheOptions: "the options changed, so the prompt was rebuilt", "选项已更改，因此提示词已重新构建";
                CacheRewound: "steps were rewound", "步骤已被回退";
                CacheProvider: "the provider had not kept it", "提供商没有保留缓存";
                // Questions to the user.
                AskChoice: "Number, or your own words", "输入编号，或自行填写";
                AskYesNo: "yes or no", "是或否";
                AskText: "Answer", "回答";
                MayThis: "Allow this?", "是否允许？";
                AskApproval: "[y]es once, [s]ession, [a]lways, [n]o (a reason may follow)",
                    "[y] 允许一次，[s] 本次会话内允许，[a] 始终允许，[n] 拒绝（可附理由）";
                AskOnce: "[y]es once, [n]o (a reason may follow)", "[y] 允许一次，[n] 拒绝（可附理由）";
                AskShowOne: "v = show the hidden line", "v = 显示隐藏的 1 行";
                AskEdit: "[e]dit it first", "[e] 先修改";
                NewText: "New text", "新的内容";
                Remembered: "session and always would allow", "选择 s 或 a 将会允许";
                EffectReads: "reads", "读取";
                EffectWrites: "writes", "写入";
                EffectRuns: "runs", "运行";
                EffectReaches: "reaches", "访问";
                EffectSets: "sets", "设置";
                EffectUnknown: "and more that cannot be determined", "以及无法确定的其他影响";
            }
            {
                $($tells)*
                Retry { seconds: f64, reason: &'a str }: "asking the model again in {seconds:.1} s: {reason}",
                    "{seconds:.1} 秒后重新请求模型：{reason}";
                Drifted { step: StepNo, place: &'a str }: "the replay drifted: step {step}, {place}",
                    "回放出现偏差：第 {step} 步，{place}";
                Summary { step: StepNo, text: &'a str }: "step {step}: {text}", "第 {step} 步：{text}";
                RunTotals { steps: &'a str, input: &'a str, cached: &'a str, output: &'a str, seconds: f64 }:
                    "{steps} · {input} tokens in{cached}, {output} out · {seconds:.1} s",
                    "{steps} · 输入 {input} 个词元{cached}，输出 {output} 个词元 · {seconds:.1} 秒";
                CachedShare { percent: u64 }: " ({percent} % cached)", "（{percent} % 命中缓存）";
                CacheUse { percent: u64, breaks: usize }: "cache: {percent} % of the input was read from it, breaks: {breaks}",
                    "缓存：{percent} % 的输入来自缓存，中断 {breaks} 次";
                CacheTime { minutes: i64 }: "{minutes} minutes had passed", "已过去 {minutes} 分钟";
                DeniedCalls { count: usize }: "{count} calls were denied by policy; see above for the rule",
                    "{count} 次调用被策略拒绝；规则见上文";
                Refused { count: u32 }: "you answered {count} questions with no", "你拒绝了 {count} 次询问";
                SandboxLevel { name: &'a str, level: u8 }: "sandbox {name} (level {level})", "沙箱 {name}（{level} 级）";
                WeakerWalls { reasons: &'a str }: "the sandbox is weaker than level 3: {reasons}", "沙箱弱于 3 级：{reasons}";
                ReachableServices { names: &'a str }: "commands can reach these services, which have more rights: {names}; at level 3 they could not",
                    "命令可以连接这些权限更高的服务：{names}；在 3 级沙箱中则不能";
                AskShowAll { lines: usize }: "v = show the {lines} hidden lines", "v = 显示隐藏的 {lines} 行";
                ShowHint { id: &'a str }: "show it again: lathe show {id}", "再次查看：lathe show {id}";
                ResumeHint { id: &'a str }: "resume it: lathe resume {id}", "恢复运行：lathe resume {id}";
                StillRunning { id: &'a str }: "still running; follow it: lathe watch {id}", "仍在运行；查看进度：lathe watch {id}";
            }
        }
    };
}
