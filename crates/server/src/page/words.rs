//! The words of the page, in two languages.

pub(super) struct Words {
    pub lang: &'static str,
    pub sessions: &'static str,
    pub none: &'static str,
    pub state: &'static str,
    pub title: &'static str,
    pub steps: &'static str,
    pub folder: &'static str,
    pub updated: &'static str,
    pub untitled: &'static str,
    pub watching: &'static str,
    pub sign_in: &'static str,
    pub cancel: &'static str,
    pub allow: &'static str,
    pub deny: &'static str,
}

const ENGLISH: Words = Words {
    lang: "en",
    sessions: "Sessions",
    none: "No session worked in the folders of this server yet.",
    state: "State",
    title: "Task",
    steps: "Steps",
    folder: "Folder",
    updated: "Last change",
    untitled: "(no task yet)",
    watching: "watching",
    sign_in: "Open this page with the address that <code>lathe serve</code> printed: it holds the token.",
    cancel: "Cancel",
    allow: "Allow once",
    deny: "Deny",
};

const CHINESE: Words = Words {
    lang: "zh",
    sessions: "会话",
    none: "此服务器的文件夹中还没有会话。",
    state: "状态",
    title: "任务",
    steps: "步数",
    folder: "文件夹",
    updated: "最后更新",
    untitled: "（尚无任务）",
    watching: "个观看者",
    sign_in: "请使用 <code>lathe serve</code> 打印的地址打开此页面：其中含有令牌。",
    cancel: "取消",
    allow: "允许一次",
    deny: "拒绝",
};

impl Words {
    /// By the browser's list of languages.
    pub fn of(accepted: &str) -> Self {
        if accepted.trim_start().to_lowercase().starts_with("zh") { CHINESE } else { ENGLISH }
    }
}
