//! The `gemini` toolset: Gemini CLI's names, parameters and strings (v0.14, the version of the design document), on Lathe's
//! tools.
//!
//! Parameters of later versions are understood too (`start_line`, `allow_multiple`, `grep_search`), because models know
//! them. What Gemini CLI gets wrong behind its strings (mixed line endings, encodings, writes in place, a state that is lost
//! between commands) is right here.

mod arguments;
mod words;

use lathe_protocol::Kind;

use crate::face::{Checks, Face, Voice};
use crate::todo;

pub(crate) static FACES: [Face; 11] = [
    Face::of::<arguments::ListDirectory>(
        "list_directory",
        "ReadFolder",
        Kind::Search,
        include_str!("list_directory.md"),
        Voice { render: words::data, words: words::listing, cap: 40_000 },
    )
    .checked(Checks::Schema)
    .or(&["LSTool", "ls"]),
    Face::of::<arguments::ReadFile>(
        "read_file",
        "ReadFile",
        Kind::Read,
        include_str!("read_file.md"),
        Voice { render: words::data, words: words::reading, cap: 400_000 },
    )
    .checked(Checks::Schema)
    .or(&["ReadFileTool"]),
    Face::of::<arguments::SearchText>(
        "search_file_content",
        "SearchText",
        Kind::Search,
        include_str!("search_file_content.md"),
        Voice { render: words::data, words: words::searching, cap: 40_000 },
    )
    .checked(Checks::Schema)
    .or(&["grep_search", "GrepTool", "RipGrepTool"]),
    Face::of::<arguments::Glob>(
        "glob",
        "FindFiles",
        Kind::Search,
        include_str!("glob.md"),
        Voice { render: words::data, words: words::searching, cap: 40_000 },
    )
    .checked(Checks::Schema)
    .or(&["GlobTool"]),
    Face::of::<arguments::Replace>(
        "replace",
        "Edit",
        Kind::Edit,
        include_str!("replace.md"),
        Voice { render: words::replaced, words: words::editing, cap: 16_000 },
    )
    .checked(Checks::Schema)
    .or(&["EditTool", "SmartEditTool"])
    .modified_by(arguments::modify_replace),
    Face::of::<arguments::WriteFile>(
        "write_file",
        "WriteFile",
        Kind::Edit,
        include_str!("write_file.md"),
        Voice { render: words::data, words: words::writing, cap: 16_000 },
    )
    .checked(Checks::Schema)
    .or(&["WriteFileTool"])
    .modified_by(arguments::modify_write),
    Face::of::<arguments::ReadMany>(
        "read_many_files",
        "ReadManyFiles",
        Kind::Read,
        include_str!("read_many_files.md"),
        Voice { render: words::data, words: words::searching, cap: 400_000 },
    )
    .checked(Checks::Schema)
    .or(&["ReadManyFilesTool"]),
    Face::of::<arguments::Shell>(
        "run_shell_command",
        "Shell",
        Kind::Execute,
        include_str!("run_shell_command.md"),
        Voice { render: words::data, words: words::running, cap: 40_000 },
    )
    .checked(Checks::Schema)
    .or(&["ShellTool"]),
    Face::of::<arguments::SaveMemory>(
        "save_memory",
        "Save Memory",
        Kind::Think,
        include_str!("save_memory.md"),
        Voice { render: words::data, words: words::remembering, cap: 16_000 },
    )
    .checked(Checks::Schema)
    .or(&["MemoryTool"])
    .modified_by(arguments::modify_memory),
    Face::of::<todo::Arguments>(
        "write_todos",
        "WriteTodos",
        Kind::Think,
        include_str!("write_todos.md"),
        Voice { render: words::data, words: words::listing, cap: 16_000 },
    )
    .checked(Checks::Schema)
    .or(&["WriteTodosTool"]),
    Face::of::<arguments::AskUser>(
        "ask_user",
        "Ask",
        Kind::Communicate,
        include_str!("ask_user.md"),
        Voice { render: words::data, words: words::asking, cap: 16_000 },
    )
    .checked(Checks::Schema)
    .or(&["AskUserTool"]),
];

/// The words for tools that are not Lathe's own: what they print, as it is.
pub(crate) fn others(cap: usize) -> Voice {
    Voice { render: words::others, words: words::running, cap }
}
