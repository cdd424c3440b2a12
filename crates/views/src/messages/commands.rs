//! The commands of the terminal: lists, tables, questions about trust, and the prompts of `interactive` and `connect`.

macro_rules! commands_messages {
    ([$next:ident $($rest:ident)*] { $($says:tt)* } { $($tells:tt)* }) => {
        $next! {
            [$($rest)*]
            {
                $($says)*
                // `run`, `resume` and `demo`.
                NothingToResume: "The last task of this session is finished. Give it another one", "该会话的上一个任务已经完成，请给出新任务";
                NoTaskYet: "This session has no task yet. Give it one", "该会话还没有任务，请给出任务";
                DemoIntro: "A real run without a key or network: the model is recorded, the tools are real.",
                    "一次真实的运行，无需密钥和网络：模型的回答是录制的，工具是真实的。";
                DemoFolder: "sample project", "示例项目";
                DemoTest: "its tests now", "现在的测试结果";
                DemoNext: "With a model of your own", "使用你自己的模型";
                // `sessions` and `show`.
                NoSessions: "No sessions yet. Start one with `lathe run` or `lathe demo`.", "还没有会话。请用 `lathe run` 或 `lathe demo` 开始。";
                NoneMatches: "No session matches.", "没有匹配的会话。";
                Damaged: "damaged", "已损坏";
                StateNew: "new", "新建";
                StateRunning: "running", "运行中";
                StateCompleted: "completed", "已完成";
                StateError: "error", "出错";
                StateCancelled: "cancelled", "已取消";
                StateInterrupted: "interrupted", "已中断";
                // `rewind`, `undo` and `diff`.
                Undone: "Undone", "已撤销";
                NothingUndone: "Nothing was undone", "没有撤销任何内容";
                WouldUndo: "Would undo", "将会撤销";
                NoFiles: "no file is changed", "没有文件改动";
                StepsDropped: "Steps of the conversation dropped", "对话中丢弃的步骤";
                LeftAlone: "Left as they are:", "保持原样：";
                MayBeOthers: "Not named by the line that ran at that time, so another program or user may have written them:",
                    "当时运行的命令行没有提到这些文件，它们可能由其他程序或用户写入：";
                OthersWrote: "Written by another program or user while a line ran, and left as they are:",
                    "命令行运行期间由其他程序或用户写入，保持原样：";
                // `quarantine` and `policy`.
                NothingKept: "nothing is kept", "隔离区中没有内容";
                NoStandingApprovals: "nothing is always allowed: there are no standing approvals", "没有始终允许的内容：尚无长期批准";
                DecisionAllow: "allow", "允许";
                DecisionAsk: "ask", "询问";
                DecisionDeny: "deny", "拒绝";
                NothingToRun: "nothing to run", "没有要运行的内容";
                // `trust`, and the question before a session.
                TrustThese: "This project contains instructions or programs that would be given to the model or run. Trust them?",
                    "该项目包含会交给模型的说明或会被运行的程序。是否信任？";
                AskTrust: "[y]es, [o]nce, [n]o, [s]how all, programs too", "[y] 信任，[o] 仅此一次，[n] 不信任，[s] 全部显示（含程序内容）";
                AskTrustThese: "Trust these? [y]es, [n]o", "信任这些？[y] 是，[n] 否";
                NothingTrusted: "nothing was trusted", "没有信任任何内容";
                NothingNeedsTrust: "nothing here needs trust", "这里没有需要信任的内容";
                OtherFolders: "other folders you decided about:", "你做过决定的其他文件夹：";
                ItemTrusted: "trusted", "已信任";
                ItemRefused: "refused", "已拒绝";
                ItemChanged: "changed", "已改动";
                ItemNew: "new", "新增";
                ItemGone: "gone", "已不存在";
                ItemInstructions: "instructions", "说明";
                ItemCheck: "check command", "检查命令";
                ItemField: "field program", "领域程序";
                ItemTraeConfig: "Trae configuration", "Trae 配置";
                // `models`, `config` and `doctor`.
                Ready: "ready", "可用";
                KeyStored: "key stored by `lathe auth login`", "密钥由 `lathe auth login` 存储";
                NoServer: "no server answers", "没有服务器响应";
                OtherServers: "Any other server that speaks OpenAI's Chat Completions: --model-base-url http://HOST/v1 --model NAME",
                    "其他任何支持 OpenAI Chat Completions 的服务器：--model-base-url http://HOST/v1 --model NAME";
                ConfigurationGood: "the configuration is good", "配置没有问题";
                CheckGood: "ok", "正常";
                CheckNote: "note", "提示";
                CheckMissing: "missing", "缺失";
                CheckBroken: "broken", "故障";
                // `cost`.
                Total: "total", "合计";
                Reviews: "reviews", "评审";
                // `serve`.
                TokenShownOnce: "This is the only time it is shown:", "令牌只显示这一次：";
                NoNamedTokens: "no token has a name yet: lathe serve token add NAME --role viewer|operator|admin",
                    "还没有命名的令牌：lathe serve token add NAME --role viewer|operator|admin";
                // `connect`.
                Reconnected: "reconnected", "已重新连接";
                Cancelling: "cancelling; press Ctrl-C again to leave", "正在取消；再按一次 Ctrl-C 离开";
                Parked: "the run was interrupted and waits to be resumed", "运行已中断，等待恢复";
                AnsweredElsewhere: "already answered from another terminal or page", "已在其他终端或页面回答";
                LeftEarly: "left before the server named a session", "在服务器指定会话之前已离开";
                WaitsForPerson: "it waits for an answer from a terminal or the page", "正在等待终端或页面上的回答";
                // `interactive`.
                TaskLabel: "Task", "任务";
                OnceMoreToLeave: "press Ctrl-C again to leave, or type `exit`", "再按一次 Ctrl-C 离开，或输入 `exit`";
                Goodbye: "Goodbye!", "再见！";
                InteractiveHelp: "Enter a task, or one of these words:\n  help    this text\n  status  model, mode, session\n  clear   clear the screen\n  exit, quit   leave; the session is kept",
                    "输入任务，或以下命令之一：\n  help    显示本帮助\n  status  模型、模式、会话\n  clear   清屏\n  exit, quit   离开；会话会保留";
                Provider: "provider", "提供商";
                Tools: "tools", "工具";
                Tasks: "tasks", "任务数";
            }
            {
                $($tells)*
                // `run`, `resume` and `demo`.
                RememberedFacts { count: usize }: "facts remembered for every project: {count}", "为所有项目记住的事实：{count} 条";
                RememberedFactsFrom { count: usize, folder: &'a str }: "facts remembered for every project: {count} (newest from {folder})",
                    "为所有项目记住的事实：{count} 条（最新一条来自 {folder}）";
                PatchSaved { path: &'a str }: "Patch saved to: {path}", "补丁已保存到：{path}";
                TrajectorySaved { path: &'a str }: "Trajectory saved to: {path}", "轨迹已保存到：{path}";
                ModeLowered { before: &'a str, now: &'a str }:
                    "the session worked in mode {before}; it resumes in mode {now}. Give --mode {before} again if you want that.",
                    "该会话之前的模式为 {before}；现在以 {now} 模式恢复。如需之前的模式，请再次给出 --mode {before}。";
                RequestSize { tokens: usize, system: usize, tools: usize }:
                    "about {tokens} tokens before the task: system {system}, tools {tools} (characters / 4)",
                    "任务之前约有 {tokens} 个词元：系统提示词 {system}，工具 {tools}（字符数 / 4）";
                ReadingInput { redirect: &'a str }: "reading standard input until it ends (close it with {redirect} if it is not meant)",
                    "正在读取标准输入，直到其结束（如非本意，请用 {redirect} 将其关闭）";
                // `sessions`.
                DamagedHint { id: &'a str }: "damaged: see `lathe show {id}`", "已损坏：请看 `lathe show {id}`";
                // `rewind` and `undo`.
                UndoHint { command: &'a str }: "`{command}` undoes this.", "`{command}` 可以撤销这一操作。";
                RedoHint { command: &'a str }: "`{command}` restores it.", "`{command}` 可以恢复。";
                StaysWhole { paths: &'a str }: "It keeps these as they are now: {paths}", "它会让以下内容保持现状：{paths}";
                // `quarantine` and `shell`.
                KeptEntry { id: &'a str, contents: &'a str, folder: &'a str }: "{id}  {contents}  in {folder}", "{id}  {contents}  位于 {folder}";
                KeptContents { files: &'a str, changes: &'a str, names: &'a str }: "{files}, {changes}, {names} of git",
                    "{files}、{changes}、git 的 {names}";
                KeptRepository { path: &'a str }: ", the repository {path}", "、仓库 {path}";
                KeptName { name: &'a str }: ", {name}", "、{name}";
                Restored { path: &'a str }: "{path}  restored", "{path}  已恢复";
                NotRestored { path: &'a str, reason: &'a str }: "{path}  left: {reason}", "{path}  未恢复：{reason}";
                LineKept { id: &'a str }: "kept: `lathe quarantine restore {id}` restores what the line removed",
                    "已保存：`lathe quarantine restore {id}` 可恢复该命令行移除的内容";
                LineNotKept { path: &'a str }: "not kept: {path}", "未保存：{path}";
                LineDenied { reason: &'a str }: "denied: {reason}", "已拒绝：{reason}";
                // `policy`.
                Revoked { rule: &'a str }: "no longer allowed: {rule}", "不再允许：{rule}";
                DecisionChanged { before: &'a str, now: &'a str, about: &'a str, rule: &'a str, new_rule: &'a str, session: &'a str, step: StepNo }:
                    "{before} -> {now}  {about}  ({rule} -> {new_rule}; session {session} step {step})",
                    "{before} -> {now}  {about}（{rule} -> {new_rule}；会话 {session} 第 {step} 步）";
                DecisionsReplayed { calls: &'a str, sessions: &'a str, same: usize }: "{calls} of {sessions}: {same} as before",
                    "{sessions}中的 {calls}：{same} 次与之前相同";
                // `trust`.
                NotTrusted { items: &'a str, folder: &'a str }:
                    "not used until you trust it: {items}. Look at it and trust it: lathe trust add{folder} (this once: --trust)",
                    "在你信任之前不会使用：{items}。查看并信任：lathe trust add{folder}（仅此一次：--trust）";
                TraeChanged { file: &'a str, path: &'a str }:
                    "The providers of {file} are not used: it has changed since you trusted it. Look at it and trust it: lathe trust add {path}",
                    "{file} 中的提供商不会使用：该文件在你信任之后有改动。查看并信任：lathe trust add {path}";
                TraeNotTrusted { file: &'a str, path: &'a str }:
                    "The providers of {file} are not used: you have not trusted it. Look at it and trust it: lathe trust add {path}",
                    "{file} 中的提供商不会使用：你尚未信任该文件。查看并信任：lathe trust add {path}";
                ItemLabel { name: &'a str, kind: &'a str }: "{name} ({kind})", "{name}（{kind}）";
                ItemChangedLabel { name: &'a str, kind: &'a str }: "{name} ({kind}, changed since you decided)",
                    "{name}（{kind}，在你决定之后有改动）";
                NowTrusted { item: &'a str }: "trusted: {item}", "已信任：{item}";
                AlreadyTrusted { name: &'a str, folder: &'a str }: "{name} of {folder} is trusted already", "{folder} 中的 {name} 已受信任";
                AllTrusted { folder: &'a str }: "all of {folder} is trusted already", "{folder} 中的内容均已受信任";
                NothingToTrust { folder: &'a str }: "nothing in {folder} needs trust", "{folder} 中没有需要信任的内容";
                NothingElseToTrust { folder: &'a str }: "nothing else in {folder} needs trust", "{folder} 中没有其他需要信任的内容";
                Forgotten { items: &'a str, folder: &'a str }: "forgotten: {items} of {folder}", "已忘记 {folder} 中 {items}内容的信任决定";
                FolderTrust { folder: &'a str, count: usize }: "{folder} ({count} trusted)", "{folder}（{count} 项已信任）";
                // `models` and `auth`.
                KeyVariable { variable: &'a str }: "key in {variable}", "密钥在 {variable} 中";
                SetVariable { variable: &'a str }: "set {variable}", "请设置 {variable}";
                KeyPrompt { provider: &'a str }: "The key for {provider}, then Enter (it will be seen): ", "输入 {provider} 的密钥，然后按回车键（输入内容可见）：";
                KeySaved { provider: &'a str, path: &'a str }: "The key for {provider} is kept in {path}.", "{provider} 的密钥已保存在 {path} 中。";
                KeyRemoved { provider: &'a str }: "The key for {provider} is removed.", "{provider} 的密钥已删除。";
                NoKeyStored { provider: &'a str }: "No key for {provider} was stored.", "没有存储过 {provider} 的密钥。";
                // `graph`.
                GraphProgress { done: usize, all: usize }: "{done} of {all} files", "已处理 {done} 个文件，共 {all} 个";
                GraphContents { files: &'a str, lines: &'a str, definitions: &'a str, uses: &'a str }: "{files}, {lines}, {definitions}, {uses}",
                    "{files}，{lines}，{definitions}，{uses}";
                GraphWork { parsed: &'a str, known: u64, gone: u64, total_ms: f64, walk_ms: f64 }:
                    "{parsed} parsed, {known} known, {gone} gone; {total_ms:.0} ms, {walk_ms:.0} ms of them looking at the files",
                    "解析 {parsed}，沿用 {known} 个，已不存在 {gone} 个；共 {total_ms:.0} 毫秒，其中 {walk_ms:.0} 毫秒用于检查文件";
                LeftOut { path: &'a str, reason: &'a str }: "left out: {path} ({reason})", "已略过：{path}（{reason}）";
                // `cost` and `gc`.
                CostRow { key: &'a str, sessions: usize, input: u64, output: u64, cost: &'a str }:
                    "{key}  {sessions:>4} sessions  {input:>11} in  {output:>9} out  {cost:>10}",
                    "{key}  {sessions:>4} 个会话  输入 {input:>11}  输出 {output:>9}  {cost:>10}";
                CostPart { part: &'a str, input: u64, output: u64, cost: &'a str }: "of that {part}: {input} in, {output} out, {cost}",
                    "其中 {part}：输入 {input}，输出 {output}，{cost}";
                CostUnpriced { tokens: &'a str, models: &'a str }: "and {tokens} of unknown price ({models})", "另有 {tokens}价格未知（{models}）";
                WouldCollect { sessions: &'a str, blobs: &'a str, leftovers: &'a str, size: &'a str }:
                    "would remove {sessions}, {blobs} and {leftovers}: {size}",
                    "将会删除 {sessions}、{blobs}、{leftovers}：{size}";
                Collected { sessions: &'a str, blobs: &'a str, leftovers: &'a str, size: &'a str }:
                    "removed {sessions}, {blobs} and {leftovers}: {size}",
                    "已删除 {sessions}、{blobs}、{leftovers}：{size}";
                NotCollected { sessions: &'a str, size: &'a str }: "kept {sessions}: {size}", "保留 {sessions}：{size}";
                // `replay`.
                Diverged { event: Seq, step: StepNo }: "event {event}, step {step}: this version would have done something else",
                    "事件 {event}，第 {step} 步：此版本会做出不同的操作";
                Differs { step: StepNo, place: &'a str }: "step {step}: {place} differs", "第 {step} 步：{place} 不同";
                RecordedAs { text: &'a str }: "  recorded: {text}", "  录制：{text}";
                NowIs { text: &'a str }: "  now:      {text}", "  当前：{text}";
                Replayed { id: &'a str, requests: &'a str, events: &'a str, divergences: &'a str }:
                    "{id}: {requests} and {events} replayed, {divergences}",
                    "{id}：已回放 {requests}、{events}，{divergences}";
                RanAgain { id: &'a str, steps: &'a str, differences: &'a str }:
                    "{id}: {steps} run again in a copy of the workspace, {differences}",
                    "{id}：已在工作区的副本中重新运行 {steps}，{differences}";
                CopyKept { folder: &'a str }: "the copy is kept for inspection: {folder}", "副本已保留，以供检查：{folder}";
                // `serve`.
                ServerListens { url: &'a str }: "Lathe listens on {url}\nCtrl-C stops it; runs that are under way can be resumed.",
                    "Lathe 正在监听 {url}\n按 Ctrl-C 停止；正在进行的运行可以恢复。";
                RunLeft { id: &'a str }: "A run was under way when the last server ended: {id}", "上一个服务器结束时，有一个运行尚未完成：{id}";
                // `connect`.
                LeftRunning { id: &'a str }: "left; the run continues. Return to it with: lathe connect URL --session {id}",
                    "已离开；运行仍在继续。返回请用：lathe connect URL --session {id}";
                NothingAsked { line: &'a str }: "`{line}` is not taken as an answer: it came before the question",
                    "`{line}` 不算回答：输入时尚未提问";
                ConnectionLost { reason: &'a str }: "connection lost, trying again ({reason})", "连接已断开，正在重试（{reason}）";
            }
        }
    };
}
