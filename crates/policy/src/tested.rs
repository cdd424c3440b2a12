//! Files of Lathe's own folder that are not read but looked for: by a test, or by a pattern whose names are printed.

use std::path::Path;

use crate::guarded::Guarded;
use crate::places::{HERE, LATHE};
use crate::reach::Reacher;
use crate::reading::{Depth, Region};
use crate::touch::{Touch, What, text};

/// Programs that tell whether a file is there.
const TESTS: [&str; 8] = ["test", "[", "[[", "type", "which", "whereis", "hash", "command"];

impl Reacher<'_> {
    /// Lathe's own folder, where a word of a program whose words are no files asks for something in it.
    pub(crate) fn looked_for(&self, name: &str, word: &str) -> Option<Touch> {
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
        let meant = touches.iter().any(|touch| match &touch.what {
            What::Path { names, .. } => names.iter().any(inside),
            What::Pattern { names, .. } => {
                let found = names.iter().filter_map(|name| disk?.expand(name)).flatten();
                Guarded::of(self.gate, word, self.from, tests) == Some(Guarded::Home)
                    || found.filter_map(|path| Some(text(&disk?.real(&path)))).any(|path| inside(&path))
            }
            What::Ending { .. } | What::Unknown => false,
        });
        let shown = touches.first().map(|touch| touch.shown.clone()).unwrap_or_default();
        let what = What::Path { names: vec![text(home)], depth: Depth::One };
        meant.then(|| Touch { shown, what, names_only: true, for_rules: false, ..Touch::spelled(word) })
    }
}
