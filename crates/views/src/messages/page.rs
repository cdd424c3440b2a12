//! The page of a session, as it is exported.

macro_rules! page_messages {
    ([$next:ident $($rest:ident)*] { $($says:tt)* } { $($tells:tt)* }) => {
        $next! {
            [$($rest)*]
            {
                $($says)*
                Report: "Session report", "会话报告";
                NoTask: "No task yet", "尚无任务";
                Workspace: "Workspace", "工作区";
                PageModel: "Model", "模型";
                PageMode: "Mode", "模式";
                PageSandbox: "Sandbox", "沙箱";
                Toolset: "Toolset", "工具集";
                Began: "Began", "开始时间";
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
                NoChanges: "No file was changed.", "没有改动任何文件。";
                Created: "created", "新建";
                Deleted: "deleted", "已删除";
                InSteps: "in step", "步骤";
                OpenAll: "Open all", "全部展开";
                CloseAll: "Close all", "全部收起";
                PageThinking: "Thinking", "思考";
                Arguments: "Arguments", "参数";
                Malformed: "not JSON", "不是 JSON";
                Error: "Error", "错误";
                NoResult: "No result yet.", "尚无结果。";
                Empty: "(nothing)", "（空）";
                ShowAll: "Show all", "显示全部";
                PageMoreLines: "more lines", "行";
                MoreText: "the rest", "其余部分";
                Allowed: "allowed", "已允许";
                Asked: "asked", "需询问";
                Approved: "approved", "已批准";
                NotRun: "not run", "未运行";
                Reflection: "Sent to the model after failed calls", "调用失败后发给模型";
                Reminder: "Sent to the model after an answer without calls", "模型的回答中没有调用时发给模型";
                Binary: "Binary content differs.", "二进制内容不同。";
                ContentGone: "The content is no longer stored.", "内容已不在存储中。";
                TooLarge: "Too large to compare here.", "内容太大，此处不作比较。";
                Unanswered: "The model has not answered yet.", "模型尚未回答。";
                Running: "Not finished", "未结束";
                EndDone: "Done", "完成";
                EndAnswered: "Answered", "已回答";
                EndFailed: "Failed", "失败";
                EndModel: "Model unavailable", "模型不可用";
                EndSteps: "Steps used up", "步数已用完";
                EndBudget: "Budget used up", "预算已用完";
                EndDenied: "Denied by policy", "被策略拒绝";
                EndDisk: "Disk full", "磁盘已满";
                EndCancelled: "Cancelled", "已取消";
                StateThinking: "thinking", "思考中";
                StateCalling: "calling tools", "正在调用工具";
                StateReflecting: "reflecting", "反思中";
                PageStateError: "error", "出错";
                Contains: "This page holds everything it shows and requests nothing from the network.", "本页包含所显示的全部内容，不发出任何网络请求。";
            }
            {
                $($tells)*
                PriceUnknown { models: &'a str }: "No known price for {models}", "以下模型没有已知价格：{models}";
                ShownToModel { shown: &'a str, all: &'a str }: "The model was shown {shown} bytes of {all}.",
                    "模型看到了 {all} 字节中的 {shown} 字节。";
            }
        }
    };
}
