//! The meaning of a program's name, in one lookup: most names mean nothing, and asking every table in turn costs more
//! than reading the command.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use crate::{foreign, programs, wrap};

/// The tables that a name is in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NameMeaning {
    pub(crate) shell: bool,
    /// It runs another command.
    pub(crate) wraps: bool,
    /// It changes the state of the shell.
    pub(crate) state: bool,
    /// It may hold a program of another language.
    pub(crate) foreign: bool,
    /// It sets variables by its words.
    pub(crate) binds: bool,
}

impl NameMeaning {
    /// True if no other command runs because of it.
    pub(crate) fn is_plain(self) -> bool {
        !self.shell && !self.wraps && !self.foreign
    }

    /// True if the content of a pipe may matter to it.
    pub(crate) fn may_receive(self) -> bool {
        self.binds || !self.is_plain()
    }
}

/// A table by short names.
pub(crate) type ByName<T> = HashMap<&'static str, T, BuildHasherDefault<ShortHasher>>;

static NAMES: LazyLock<ByName<NameMeaning>> = LazyLock::new(|| {
    let mut names: HashMap<&'static str, NameMeaning, _> = HashMap::default();
    let mut add = |name: &'static str, set: fn(&mut NameMeaning)| set(names.entry(name).or_default());
    wrap::SHELLS.into_iter().for_each(|name| add(name, |meaning| meaning.shell = true));
    wrap::names().for_each(|name| add(name, |meaning| meaning.wraps = true));
    programs::STATE.into_iter().for_each(|name| add(name, |meaning| meaning.state = true));
    foreign::names().for_each(|name| add(name, |meaning| meaning.foreign = true));
    let binding = ["set", "read", "mapfile", "readarray", "printf", "git"];
    binding.into_iter().for_each(|name| add(name, |meaning| meaning.binds = true));
    names
});

/// The meaning of a name. A version at its end does not make it another interpreter.
pub(crate) fn meaning(name: &str) -> NameMeaning {
    let found = NAMES.get(name).copied();
    let bare = || {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        NAMES.get(bare).filter(|meaning| meaning.foreign && bare.len() < name.len()).copied()
    };
    found
        .or_else(|| if name.ends_with(|c: char| c.is_ascii_digit()) { bare() } else { None })
        .unwrap_or_default()
}

/// A hasher for short, known names, for which an attacker gains nothing by making them collide.
#[derive(Default)]
pub(crate) struct ShortHasher(u64);

impl Hasher for ShortHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().take(16) {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        self.0 ^= bytes.len() as u64;
    }
}
