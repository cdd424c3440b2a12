//! The status page of the server.

macro_rules! server_messages {
    ([$next:ident $($rest:ident)*] { $($says:tt)* } { $($tells:tt)* }) => {
        $next! {
            [$($rest)*]
            {
                $($says)*
                StatusSessions: "Sessions", "会话";
                StatusNone: "No session has worked in the folders of this server yet.", "此服务器的文件夹中还没有会话。";
                StatusState: "State", "状态";
                StatusSteps: "Steps", "步数";
                StatusFolder: "Folder", "文件夹";
                StatusUpdated: "Last change", "最后更新";
                StatusUntitled: "(no task yet)", "（尚无任务）";
                StatusWatching: "watching", "个客户端在观看";
                StatusCancel: "Cancel", "取消";
                StatusAllow: "Allow once", "允许一次";
                StatusDeny: "Deny", "拒绝";
            }
            {
                $($tells)*
                SignIn { command: &'a str }: "Open this page with the address that {command} printed: it holds the token.",
                    "请使用 {command} 输出的地址打开此页面：地址中含有令牌。";
            }
        }
    };
}
