//! Files that are not read but tested for: by a test, or by a pattern whose names are printed.

use std::path::Path;

use lathe_bash::{Piece, Word};

use crate::guarded::GuardedPlace;
use crate::places::{HERE, LATHE, UNKNOWN};
use crate::reach::{TouchFinder, is_pattern};
use crate::reading::{Depth, Region};
use crate::touch::{Touch, TouchTarget, text};

/// Programs that report whether a file exists.
const TESTS: [&str; 8] = ["test", "[", "[[", "type", "which", "whereis", "hash", "command"];

/// Builtins that do not search for files that match a word.
const NO_FILES: [&str; 8] = ["[[", "export", "declare", "typeset", "local", "readonly", "alias", "let"];

impl TouchFinder<'_> {
    /// The folders whose names a word reveals although the program reads no file: those that bash searches for the
    /// matches of a pattern, in the word itself or in the value of a variable in it.
    pub(crate) fn listed_folders(&self, name: &str, word: &Word) -> Vec<Touch> {
        if NO_FILES.contains(&name) {
            return Vec::new();
        }
        let named = word.pieces.iter().filter_map(|piece| match piece {
            // `${#x[@]}`
            Piece::Operator { name, how } if &**name == "#" => {
                self.values.get(how.split('[').next().unwrap_or_default())
            }
            Piece::Variable { name, .. } | Piece::Operator { name, .. } => {
                self.values.get(name.trim_start_matches(['#', '!']))
            }
            _ => None,
        });
        let words = std::iter::once(word).chain(named.flatten()).filter(|word| is_pattern(word));
        let texts = words.flat_map(|word| self.spell(word)).filter(|text| !text.contains(UNKNOWN));
        texts.flat_map(|text| self.listed_for(&text)).collect()
    }

    fn listed_for(&self, text: &str) -> Vec<Touch> {
        let is_open = |part: &&str| part.contains(['*', '?', '[']);
        let parts: Vec<&str> = text.split('/').collect();
        let mut touches = Vec::new();
        for (at, _) in parts.iter().enumerate().filter(|(_, part)| is_open(part)) {
            let folder = parts.get(..at).unwrap_or_default().join("/");
            let folder = match folder.as_str() {
                "" if at == 0 => ".",
                "" => "/",
                folder => folder,
            };
            self.add(&mut touches, folder, Depth::One, true);
        }
        // A name after a pattern is printed only if it exists.
        if parts.iter().any(is_open) && parts.last().is_some_and(|last| !is_open(last)) {
            self.add(&mut touches, text, Depth::One, true);
        }
        touches.into_iter().map(|touch| Touch { names_only: true, ..touch }).collect()
    }

    /// Lathe's own folder, where a word of a program whose words are not files asks for something in it.
    pub(crate) fn tested_home(&self, name: &str, word: &str) -> Option<Touch> {
        let tests = TESTS.contains(&name);
        let is_pattern = word.contains(['*', '?', '[']);
        let is_path = word.contains('/') || word.starts_with(LATHE) || word.starts_with(HERE) || tests;
        if word.len() < 2 && !word.starts_with(LATHE) || !is_path || !(tests || is_pattern) {
            return None;
        }
        let mut touches = Vec::new();
        self.add(&mut touches, word, Depth::One, true);
        let home = &self.gate.home;
        let disk = self.gate.disk.get();
        let inside = |name: &String| {
            self.gate.region(Path::new(name), Depth::One) == Region::LatheHome
                && (tests || Path::new(name) != home.as_path())
        };
        let meant = touches.iter().any(|touch| match &touch.target {
            TouchTarget::Path { names, .. } => names.iter().any(inside),
            TouchTarget::Pattern { names, .. } => {
                let found = names.iter().filter_map(|name| disk?.expand(name)).flatten();
                GuardedPlace::of(self.gate, word, self.from, tests) == Some(GuardedPlace::Home)
                    || found.filter_map(|path| Some(text(&disk?.real(&path)))).any(|path| inside(&path))
            }
            TouchTarget::Ending { .. } | TouchTarget::Unknown => false,
        });
        let shown = touches.first().map(|touch| touch.shown.clone()).unwrap_or_default();
        let what = TouchTarget::Path { names: vec![text(home)], depth: Depth::One };
        meant.then(|| Touch {
            shown,
            target: what,
            names_only: true,
            for_rules: false,
            ..Touch::spelled(word)
        })
    }
}
