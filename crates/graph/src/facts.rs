//! The facts of one file: definitions, sites, imports.
//!
//! Facts depend on the bytes of the file and its language only, never on the path or on other files. So they are kept
//! by content hash, and a file that returns to an old content (branch switch, revert) costs nothing. Everything that
//! needs other files is resolution, and happens when a question is asked.
//!
//! Strings are stored once, sorted, in one area; records hold numbers. A name is found in a file by binary search, so
//! no index over all files must be updated when one of them changes.

use serde::{Deserialize, Serialize};

/// Stands for "none" as a definition or a parent.
pub const NONE: u32 = u32::MAX;

/// The number of a string in its file's table. `Sym(0)` is always the empty string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sym(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum DefKind {
    Function,
    Method,
    Constructor,
    Class,
    Struct,
    Interface,
    Trait,
    Enum,
    Variant,
    Type,
    Constant,
    Variable,
    Field,
    Macro,
    Module,
    /// A block that adds to a type defined elsewhere: Rust `impl`, Swift `extension`.
    Impl,
    Test,
}

impl DefKind {
    pub const ALL: [Self; 17] = [
        Self::Function,
        Self::Method,
        Self::Constructor,
        Self::Class,
        Self::Struct,
        Self::Interface,
        Self::Trait,
        Self::Enum,
        Self::Variant,
        Self::Type,
        Self::Constant,
        Self::Variable,
        Self::Field,
        Self::Macro,
        Self::Module,
        Self::Impl,
        Self::Test,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Method => "method",
            Self::Constructor => "constructor",
            Self::Class => "class",
            Self::Struct => "struct",
            Self::Interface => "interface",
            Self::Trait => "trait",
            Self::Enum => "enum",
            Self::Variant => "variant",
            Self::Type => "type",
            Self::Constant => "constant",
            Self::Variable => "variable",
            Self::Field => "field",
            Self::Macro => "macro",
            Self::Module => "module",
            Self::Impl => "impl",
            Self::Test => "test",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// True if it holds members: methods and fields belong to it.
    pub fn is_type(self) -> bool {
        matches!(self, Self::Class | Self::Struct | Self::Interface | Self::Trait | Self::Enum | Self::Impl)
    }

    /// True if it can be called; its locals are not visible outside.
    pub fn is_callable(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Constructor | Self::Macro | Self::Test)
    }
}

/// The ways in which a name is used at a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum UseKind {
    Call,
    Read,
    Type,
    Inherit,
    Implement,
}

impl UseKind {
    pub const ALL: [Self; 5] = [Self::Call, Self::Read, Self::Type, Self::Inherit, Self::Implement];

    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Read => "read",
            Self::Type => "type",
            Self::Inherit => "inherit",
            Self::Implement => "implement",
        }
    }
}

/// Bits of [`Def::flags`].
pub mod def_flag {
    /// Visible outside its file by the rules of its language.
    pub const EXPORTED: u8 = 1;
    pub const TEST: u8 = 2;
    /// Declared, not defined: a prototype, a signature without a body.
    pub const DECLARED: u8 = 4;
    pub const STATIC: u8 = 8;
    /// The default export of its file.
    pub const DEFAULT: u8 = 16;
}

/// Bits of [`Site::flags`].
pub mod site_flag {
    /// The bare name is bound in the function around it: a parameter or a local variable.
    pub const LOCAL: u8 = 1;
    /// The qualifier is the type of the receiver, as seen in the function around it.
    pub const TYPED: u8 = 2;
    /// There is a receiver, although its text is not kept.
    pub const RECEIVER: u8 = 4;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Def {
    pub name: Sym,
    pub kind: DefKind,
    pub flags: u8,
    /// The definition around it, by its number in the file; [`NONE`] at the top.
    pub parent: u32,
    /// The type it belongs to if that is not around it: `K` of `void K::f()`, the receiver of a Go method.
    pub owner: Sym,
    /// 1-based, of the whole definition without decorators.
    pub start_line: u32,
    pub end_line: u32,
    /// The line of its name.
    pub line: u32,
    pub start_byte: u32,
    pub end_byte: u32,
    pub signature: Sym,
    pub doc: Sym,
    /// The declared type of a field or variable, or the result type of a function; `f()` if it is the result of a
    /// call.
    pub ty: Sym,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    pub name: Sym,
    /// The text before the name: `a.b` of `a.b.f()`, `new()` of `new().f()`. Empty for a bare name.
    pub qualifier: Sym,
    pub line: u32,
    /// The definition that contains it; [`NONE`] at the top.
    pub def: u32,
    pub column: u16,
    pub used: UseKind,
    pub flags: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Import {
    pub module: Sym,
    /// The name inside the module. Empty for the module itself, `*` for everything.
    pub name: Sym,
    pub alias: Sym,
    pub line: u32,
    pub def: u32,
    /// True if it is passed on to files that import this file.
    pub exported: bool,
}

/// The reasons why a file has no facts, or fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Gap {
    None,
    /// The file was read, with syntax errors in it.
    SyntaxErrors,
    TooLarge,
    Minified,
    Binary,
    TooSlow,
    Unreadable,
    TooMany,
}

impl Gap {
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::SyntaxErrors,
        Self::TooLarge,
        Self::Minified,
        Self::Binary,
        Self::TooSlow,
        Self::Unreadable,
        Self::TooMany,
    ];

    /// Tells whether the file is missing from answers.
    pub fn is_left_out(self) -> bool {
        !matches!(self, Self::None | Self::SyntaxErrors)
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::None => "read",
            Self::SyntaxErrors => "has syntax errors",
            Self::TooLarge => "too large",
            Self::Minified => "minified",
            Self::Binary => "binary",
            Self::TooSlow => "took too long to parse",
            Self::Unreadable => "could not be read",
            Self::TooMany => "beyond the limit of files",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub(crate) text: Box<str>,
    /// End of each string in `text`; sorted by string, unique.
    pub(crate) ends: Vec<u32>,
    pub defs: Vec<Def>,
    /// Sorted by name, then line.
    pub sites: Vec<Site>,
    pub imports: Vec<Import>,
    /// The package or namespace that the file declares.
    pub package: Sym,
    pub lines: u32,
    pub gap: Gap,
}

impl Facts {
    pub fn empty(gap: Gap) -> Self {
        Self {
            text: "".into(),
            ends: vec![0],
            defs: Vec::new(),
            sites: Vec::new(),
            imports: Vec::new(),
            package: Sym(0),
            lines: 0,
            gap,
        }
    }

    pub fn str(&self, sym: Sym) -> &str {
        let at = sym.0 as usize;
        let Some(&end) = self.ends.get(at) else { return "" };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        self.text.get(start as usize..end as usize).unwrap_or("")
    }

    pub fn sym(&self, text: &str) -> Option<Sym> {
        let (mut low, mut high) = (0u32, self.ends.len() as u32);
        while low < high {
            let middle = low.midpoint(high);
            match self.str(Sym(middle)).cmp(text) {
                std::cmp::Ordering::Equal => return Some(Sym(middle)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The sites with this name, in the order of their lines.
    pub fn sites_named(&self, name: Sym) -> &[Site] {
        let start = self.sites.partition_point(|site| site.name < name);
        let end = start + self.sites[start..].partition_point(|site| site.name == name);
        &self.sites[start..end]
    }

    pub fn def(&self, index: u32) -> Option<&Def> {
        self.defs.get(index as usize)
    }

    pub fn name(&self, def: &Def) -> &str {
        self.str(def.name)
    }

    /// The name of the type a definition belongs to, or of the definition around it.
    pub fn container(&self, def: &Def) -> &str {
        if def.owner != Sym(0) {
            return self.str(def.owner);
        }
        self.def(def.parent).map_or("", |parent| self.name(parent))
    }

    /// `a.b.c` from the outermost definition inwards.
    pub fn path_of(&self, def: &Def) -> String {
        let mut parts = vec![self.name(def)];
        let mut at = *def;
        for _ in 0..32 {
            if at.owner != Sym(0) {
                parts.push(self.str(at.owner));
                break;
            }
            let Some(parent) = self.def(at.parent) else { break };
            parts.push(self.name(parent));
            at = *parent;
        }
        parts.reverse();
        parts.join(".")
    }

    /// Tells whether `inner` is `outer` or is nested in it.
    pub fn is_within(&self, mut inner: u32, outer: u32) -> bool {
        for _ in 0..256 {
            if inner == outer {
                return true;
            }
            match self.def(inner) {
                Some(def) => inner = def.parent,
                None => return false,
            }
        }
        false
    }
}
