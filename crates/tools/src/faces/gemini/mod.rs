//! The `gemini` toolset: Gemini CLI's names, parameters and strings (v0.14, the version of the design document), on
//! Lathe's tools.
//!
//! Parameters of later versions are understood too (`start_line`, `allow_multiple`, `grep_search`), because models
//! know them. Faults in what Gemini CLI does underneath its strings (mixed line endings, encodings, writes in place, a state
//! that is lost between commands) are not repeated here.

mod arguments;
mod strings;

use lathe_protocol::ToolKind;

use crate::faces::{ArgumentCheck, Face, Voice};
use crate::todo;

pub(crate) static FACES: [Face; 11] = [
    Face::of::<arguments::ListDirectory>(
        "list_directory",
        "ReadFolder",
        ToolKind::Search,
        include_str!("list_directory.md"),
        Voice { render: strings::data, words: strings::list_problem, cap: 40_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["LSTool", "ls"]),
    Face::of::<arguments::ReadFile>(
        "read_file",
        "ReadFile",
        ToolKind::Read,
        include_str!("read_file.md"),
        Voice { render: strings::data, words: strings::read_problem, cap: 400_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["ReadFileTool"]),
    Face::of::<arguments::SearchText>(
        "search_file_content",
        "SearchText",
        ToolKind::Search,
        include_str!("search_file_content.md"),
        Voice { render: strings::data, words: strings::search_problem, cap: 40_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["grep_search", "GrepTool", "RipGrepTool"]),
    Face::of::<arguments::GeminiGlob>(
        "glob",
        "FindFiles",
        ToolKind::Search,
        include_str!("glob.md"),
        Voice { render: strings::data, words: strings::search_problem, cap: 40_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["GlobTool"]),
    Face::of::<arguments::Replace>(
        "replace",
        "Edit",
        ToolKind::Edit,
        include_str!("replace.md"),
        Voice { render: strings::replace_result, words: strings::edit_problem, cap: 16_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["EditTool", "SmartEditTool"])
    .modified_by(arguments::modify_replace),
    Face::of::<arguments::WriteFile>(
        "write_file",
        "WriteFile",
        ToolKind::Edit,
        include_str!("write_file.md"),
        Voice { render: strings::data, words: strings::write_problem, cap: 16_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["WriteFileTool"])
    .modified_by(arguments::modify_write),
    Face::of::<arguments::ReadMany>(
        "read_many_files",
        "ReadManyFiles",
        ToolKind::Read,
        include_str!("read_many_files.md"),
        Voice { render: strings::data, words: strings::search_problem, cap: 400_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["ReadManyFilesTool"]),
    Face::of::<arguments::GeminiShell>(
        "run_shell_command",
        "Shell",
        ToolKind::Execute,
        include_str!("run_shell_command.md"),
        Voice { render: strings::data, words: strings::run_problem, cap: 40_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["ShellTool"]),
    Face::of::<arguments::SaveMemory>(
        "save_memory",
        "Save Memory",
        ToolKind::Think,
        include_str!("save_memory.md"),
        Voice { render: strings::data, words: strings::memory_problem, cap: 16_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["MemoryTool"])
    .modified_by(arguments::modify_memory),
    Face::of::<todo::TodoParameters>(
        "write_todos",
        "WriteTodos",
        ToolKind::Think,
        include_str!("write_todos.md"),
        Voice { render: strings::data, words: strings::list_problem, cap: 16_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["WriteTodosTool"]),
    Face::of::<arguments::AskUser>(
        "ask_user",
        "Ask",
        ToolKind::Communicate,
        include_str!("ask_user.md"),
        Voice { render: strings::data, words: strings::ask_problem, cap: 16_000 },
    )
    .with_check(ArgumentCheck::Schema)
    .with_aliases(&["AskUserTool"]),
];

/// The wording for tools that are not Lathe's own: their output as it is.
pub(crate) fn outside_voice(cap: usize) -> Voice {
    Voice { render: strings::outside_result, words: strings::run_problem, cap }
}
