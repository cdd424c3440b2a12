//! The words of the page, in two languages.

/// The language of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// The code of the `lang` attribute.
    pub(super) fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh-CN",
        }
    }
}

macro_rules! messages {
    ($($id:ident: $english:literal, $chinese:literal;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Say {
            $($id,)*
        }

        impl Say {
            pub(super) fn text(self, language: Language) -> &'static str {
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
    Report: "Session report", "会话报告";
    NoTask: "No task yet", "尚无任务";
    Workspace: "Workspace", "工作区";
    Model: "Model", "模型";
    Mode: "Mode", "模式";
    Sandbox: "Sandbox", "沙箱";
    Toolset: "Toolset", "工具集";
    Began: "Began", "开始于";
    ForkedFrom: "Forked from", "分叉自";
    Version: "Lathe", "Lathe";
    Duration: "Duration", "用时";
    Steps: "Steps", "步骤";
    StepsLower: "steps", "个步骤";
    Step: "Step", "步骤";
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
    Task: "Task", "任务";
    Run: "Run", "运行";
    Time: "Time", "时间";
    TimeAbout: "What took the time, one step after the other. Waiting between steps is left out.",
        "时间花在哪里，按步骤先后排列；步骤之间的等待不计。";
    ModelTime: "Model", "模型";
    ToolTime: "Tools", "工具";
    Tokens: "Tokens and cost by step", "每步词元与费用";
    TokensAbout: "Each column is one step. Choose it to go there.", "每一列是一个步骤，点击可跳转。";
    FreshInput: "new input", "新输入";
    CachedInput: "cached input", "缓存输入";
    Output: "output", "输出";
    Changed: "Changed files", "改动的文件";
    NoChanges: "No file was changed.", "没有改动文件。";
    Created: "created", "新建";
    Deleted: "deleted", "删除";
    InSteps: "in step", "步骤";
    OpenAll: "Open all", "全部展开";
    CloseAll: "Close all", "全部收起";
    Thinking: "Thinking", "思考";
    Arguments: "Arguments", "参数";
    Malformed: "not JSON", "不是 JSON";
    Error: "Error", "错误";
    NoResult: "No result yet.", "尚无结果。";
    Empty: "(nothing)", "（空）";
    ShowAll: "Show all", "显示全部";
    MoreLines: "more lines", "行";
    MoreText: "the rest", "其余部分";
    ShownToModel: "The model was shown", "模型看到了";
    OfBytes: "bytes of", "字节，共";
    Allowed: "allowed", "已允许";
    Asked: "asked", "需询问";
    Approved: "approved", "已批准";
    Denied: "denied", "已拒绝";
    Exit: "exit", "退出码";
    NotRun: "not run", "未运行";
    Reflection: "Told to the model after failed calls", "调用失败后告知模型";
    Reminder: "Told to the model after an answer without calls", "无调用的回答后告知模型";
    Binary: "Binary content differs.", "二进制内容不同。";
    ContentGone: "The content is no longer stored.", "内容已不在存储中。";
    TooLarge: "Too large to compare here.", "太大，此处不比较。";
    Unanswered: "The model has not answered yet.", "模型尚未回答。";
    Running: "Not finished", "未结束";
    EndDone: "Done", "完成";
    EndAnswered: "Answered", "已回答";
    EndFailed: "Failed", "失败";
    EndModel: "Model unavailable", "模型不可用";
    EndSteps: "Steps used up", "步骤用尽";
    EndBudget: "Budget used up", "预算用尽";
    EndDenied: "Denied by policy", "被策略拒绝";
    EndDisk: "Disk full", "磁盘已满";
    EndCancelled: "Cancelled", "已取消";
    StateThinking: "thinking", "思考中";
    StateCalling: "calling tools", "调用工具中";
    StateReflecting: "reflecting", "反思中";
    StateError: "error", "错误";
    Contains: "This page holds everything it shows and asks nothing of the network.",
        "本页包含所显示的全部内容，不发出任何网络请求。";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_there_in_both_languages() {
        for word in Say::ALL {
            for language in [Language::English, Language::Chinese] {
                let text = word.text(language);
                assert!(!text.trim().is_empty() && !text.contains(['<', '>', '&', '"']), "{word:?}");
            }
        }
    }
}
