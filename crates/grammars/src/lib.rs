//! The tree-sitter languages: the language of a file, and its parser.
//!
//! The grammars are C code that takes longer to compile than all of Lathe, so they are in a crate that changes
//! rarely, and nothing else is in it.

pub use tree_sitter::{
    InputEdit, Language as Grammar, Node, ParseOptions, ParseState, Parser, Point, Tree, TreeCursor,
};

/// A language with a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    Bash,
    C,
    Cpp,
    CSharp,
    Css,
    Go,
    Html,
    Java,
    /// With JSX, which its grammar knows.
    JavaScript,
    Json,
    Kotlin,
    Lua,
    Php,
    Python,
    Ruby,
    Rust,
    Scala,
    Swift,
    Tsx,
    TypeScript,
}

impl Language {
    pub const ALL: [Self; 20] = [
        Self::Bash,
        Self::C,
        Self::Cpp,
        Self::CSharp,
        Self::Css,
        Self::Go,
        Self::Html,
        Self::Java,
        Self::JavaScript,
        Self::Json,
        Self::Kotlin,
        Self::Lua,
        Self::Php,
        Self::Python,
        Self::Ruby,
        Self::Rust,
        Self::Scala,
        Self::Swift,
        Self::Tsx,
        Self::TypeScript,
    ];

    /// The language of a file by its name. A header `.h` counts as C, although C++ headers are also called so; code
    /// that reports errors has to take that into account.
    pub fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        match name {
            ".bashrc" | ".bash_profile" | ".bash_aliases" | ".profile" => return Some(Self::Bash),
            "Gemfile" | "Rakefile" | "Vagrantfile" | "Podfile" | "Brewfile" => return Some(Self::Ruby),
            _ => {}
        }
        let (stem, ending) = name.rsplit_once('.')?;
        if stem.is_empty() {
            return None;
        }
        Some(match ending.to_ascii_lowercase().as_str() {
            "sh" | "bash" => Self::Bash,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "c++" | "hh" | "hpp" | "hxx" | "h++" | "ipp" | "tpp" | "inl" => Self::Cpp,
            "cs" | "csx" => Self::CSharp,
            "css" => Self::Css,
            "go" => Self::Go,
            "html" | "htm" | "xhtml" => Self::Html,
            "java" => Self::Java,
            "js" | "jsx" | "mjs" | "cjs" => Self::JavaScript,
            "json" => Self::Json,
            "kt" | "kts" => Self::Kotlin,
            "lua" => Self::Lua,
            "php" | "phtml" => Self::Php,
            "py" | "pyi" | "pyw" => Self::Python,
            "rb" | "rake" | "gemspec" | "ru" => Self::Ruby,
            "rs" => Self::Rust,
            "scala" | "sc" | "sbt" => Self::Scala,
            "swift" => Self::Swift,
            "tsx" => Self::Tsx,
            "ts" | "mts" | "cts" => Self::TypeScript,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "Bash",
            Self::C => "C",
            Self::Cpp => "C++",
            Self::CSharp => "C#",
            Self::Css => "CSS",
            Self::Go => "Go",
            Self::Html => "HTML",
            Self::Java => "Java",
            Self::JavaScript => "JavaScript",
            Self::Json => "JSON",
            Self::Kotlin => "Kotlin",
            Self::Lua => "Lua",
            Self::Php => "PHP",
            Self::Python => "Python",
            Self::Ruby => "Ruby",
            Self::Rust => "Rust",
            Self::Scala => "Scala",
            Self::Swift => "Swift",
            Self::Tsx => "TSX",
            Self::TypeScript => "TypeScript",
        }
    }

    /// The grammar itself, for queries.
    pub fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Bash => tree_sitter_bash::LANGUAGE,
            Self::C => tree_sitter_c::LANGUAGE,
            Self::Cpp => tree_sitter_cpp::LANGUAGE,
            Self::CSharp => tree_sitter_c_sharp::LANGUAGE,
            Self::Css => tree_sitter_css::LANGUAGE,
            Self::Go => tree_sitter_go::LANGUAGE,
            Self::Html => tree_sitter_html::LANGUAGE,
            Self::Java => tree_sitter_java::LANGUAGE,
            Self::JavaScript => tree_sitter_javascript::LANGUAGE,
            Self::Json => tree_sitter_json::LANGUAGE,
            Self::Kotlin => tree_sitter_kotlin_ng::LANGUAGE,
            Self::Lua => tree_sitter_lua::LANGUAGE,
            Self::Php => tree_sitter_php::LANGUAGE_PHP,
            Self::Python => tree_sitter_python::LANGUAGE,
            Self::Ruby => tree_sitter_ruby::LANGUAGE,
            Self::Rust => tree_sitter_rust::LANGUAGE,
            Self::Scala => tree_sitter_scala::LANGUAGE,
            Self::Swift => tree_sitter_swift::LANGUAGE,
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX,
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        }
        .into()
    }

    /// The rules by which the code graph reads the language, its own file first; `None` for a language without
    /// definitions. The files are data (`languages/<name>/graph.rules`); `lathe-graph` documents their format.
    pub fn graph_rules(self) -> Option<&'static [&'static str]> {
        const JAVASCRIPT: &str = include_str!("../languages/javascript/graph.rules");
        const TYPESCRIPT: &str = include_str!("../languages/typescript/graph.rules");
        const C: &str = include_str!("../languages/c/graph.rules");
        Some(match self {
            Self::Bash => &[include_str!("../languages/bash/graph.rules")],
            Self::C => &[C],
            Self::Cpp => &[include_str!("../languages/cpp/graph.rules"), C],
            Self::CSharp => &[include_str!("../languages/csharp/graph.rules")],
            Self::Go => &[include_str!("../languages/go/graph.rules")],
            Self::Java => &[include_str!("../languages/java/graph.rules")],
            Self::JavaScript => &[JAVASCRIPT],
            Self::Kotlin => &[include_str!("../languages/kotlin/graph.rules")],
            Self::Lua => &[include_str!("../languages/lua/graph.rules")],
            Self::Php => &[include_str!("../languages/php/graph.rules")],
            Self::Python => &[include_str!("../languages/python/graph.rules")],
            Self::Ruby => &[include_str!("../languages/ruby/graph.rules")],
            Self::Rust => &[include_str!("../languages/rust/graph.rules")],
            Self::Scala => &[include_str!("../languages/scala/graph.rules")],
            Self::Swift => &[include_str!("../languages/swift/graph.rules")],
            Self::Tsx | Self::TypeScript => &[TYPESCRIPT, JAVASCRIPT],
            Self::Css | Self::Html | Self::Json => return None,
        })
    }

    /// A parser for the language; `None` only for a grammar built for another version of tree-sitter, which a test
    /// excludes.
    pub fn parser(self) -> Option<Parser> {
        let mut parser = Parser::new();
        parser.set_language(&self.grammar()).ok()?;
        Some(parser)
    }
}
