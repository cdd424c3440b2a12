//! The `gemini` toolset: Gemini CLI's names, parameters and strings (v0.14, the version of the design document), on Lathe's
//! tools.
//!
//! Parameters of later versions are understood too (`start_line`, `allow_multiple`, `grep_search`), because models know
//! them. What Gemini CLI gets wrong behind its strings (mixed line endings, encodings, writes in place, a state that is lost
//! between commands) is right here.

mod arguments;
mod words;

use lathe_protocol::{Kind, Raw};

use crate::face::{Checks, Face, Voice};
use crate::schema::schema_of;

pub(crate) static FACES: [Face; 11] = [
    Face {
        name: "list_directory",
        display: "ReadFolder",
        aliases: &["LSTool", "ls"],
        kind: Kind::Search,
        description: include_str!("list_directory.md"),
        schema: schema_of::<arguments::ListDirectory>,
        checks: Checks::Schema,
        adapt: arguments::list_directory,
        modify: None,
        voice: Voice { render: words::data, words: words::listing, cap: 40_000 },
    },
    Face {
        name: "read_file",
        display: "ReadFile",
        aliases: &["ReadFileTool"],
        kind: Kind::Read,
        description: include_str!("read_file.md"),
        schema: schema_of::<arguments::ReadFile>,
        checks: Checks::Schema,
        adapt: arguments::read_file,
        modify: None,
        voice: Voice { render: words::data, words: words::reading, cap: 400_000 },
    },
    Face {
        name: "search_file_content",
        display: "SearchText",
        aliases: &["grep_search", "GrepTool", "RipGrepTool"],
        kind: Kind::Search,
        description: include_str!("search_file_content.md"),
        schema: schema_of::<arguments::SearchText>,
        checks: Checks::Schema,
        adapt: arguments::search,
        modify: None,
        voice: Voice { render: words::data, words: words::searching, cap: 40_000 },
    },
    Face {
        name: "glob",
        display: "FindFiles",
        aliases: &["GlobTool"],
        kind: Kind::Search,
        description: include_str!("glob.md"),
        schema: schema_of::<arguments::Glob>,
        checks: Checks::Schema,
        adapt: arguments::glob,
        modify: None,
        voice: Voice { render: words::data, words: words::searching, cap: 40_000 },
    },
    Face {
        name: "replace",
        display: "Edit",
        aliases: &["EditTool", "SmartEditTool"],
        kind: Kind::Edit,
        description: include_str!("replace.md"),
        schema: schema_of::<arguments::Replace>,
        checks: Checks::Schema,
        adapt: arguments::replace,
        modify: Some(arguments::modify_replace),
        voice: Voice { render: words::replaced, words: words::editing, cap: 16_000 },
    },
    Face {
        name: "write_file",
        display: "WriteFile",
        aliases: &["WriteFileTool"],
        kind: Kind::Edit,
        description: include_str!("write_file.md"),
        schema: schema_of::<arguments::WriteFile>,
        checks: Checks::Schema,
        adapt: arguments::write_file,
        modify: Some(arguments::modify_write),
        voice: Voice { render: words::data, words: words::writing, cap: 16_000 },
    },
    Face {
        name: "read_many_files",
        display: "ReadManyFiles",
        aliases: &["ReadManyFilesTool"],
        kind: Kind::Read,
        description: include_str!("read_many_files.md"),
        schema: schema_of::<arguments::ReadMany>,
        checks: Checks::Schema,
        adapt: arguments::read_many,
        modify: None,
        voice: Voice { render: words::data, words: words::searching, cap: 400_000 },
    },
    Face {
        name: "run_shell_command",
        display: "Shell",
        aliases: &["ShellTool"],
        kind: Kind::Execute,
        description: include_str!("run_shell_command.md"),
        schema: schema_of::<arguments::Shell>,
        checks: Checks::Schema,
        adapt: arguments::shell,
        modify: None,
        voice: Voice { render: words::data, words: words::running, cap: 40_000 },
    },
    Face {
        name: "save_memory",
        display: "Save Memory",
        aliases: &["MemoryTool"],
        kind: Kind::Think,
        description: include_str!("save_memory.md"),
        schema: schema_of::<arguments::SaveMemory>,
        checks: Checks::Schema,
        adapt: arguments::save_memory,
        modify: Some(arguments::modify_memory),
        voice: Voice { render: words::data, words: words::remembering, cap: 16_000 },
    },
    Face {
        name: "write_todos",
        display: "WriteTodos",
        aliases: &["WriteTodosTool"],
        kind: Kind::Think,
        description: include_str!("write_todos.md"),
        schema: todos,
        checks: Checks::Schema,
        adapt: arguments::write_todos,
        modify: None,
        voice: Voice { render: words::data, words: words::listing, cap: 16_000 },
    },
    Face {
        name: "ask_user",
        display: "Ask",
        aliases: &["AskUserTool"],
        kind: Kind::Communicate,
        description: include_str!("ask_user.md"),
        schema: schema_of::<arguments::AskUser>,
        checks: Checks::Schema,
        adapt: arguments::ask_user,
        modify: None,
        voice: Voice { render: words::data, words: words::asking, cap: 16_000 },
    },
];

/// The words for tools that are not Lathe's own: what they print, as it is.
pub(crate) fn others(cap: usize) -> Voice {
    Voice { render: words::others, words: words::running, cap }
}

/// As the type says, and nothing beside it.
fn todos() -> Raw {
    schema_of::<crate::todo::Arguments>()
}
