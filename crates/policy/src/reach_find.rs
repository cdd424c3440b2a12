//! Files that a search deletes, by the names it searches for.

use std::path::Path;

use crate::gate::normal;
use crate::guard::find_parts;
use crate::places::UNKNOWN;
use crate::reach::TouchFinder;
use crate::reading::Depth;
use crate::touch::{Touch, TouchTarget, text};

/// Tests of `find` that compare each file with another one.
const COMPARED: [&str; 4] = ["-newer", "-anewer", "-cnewer", "-samefile"];

impl TouchFinder<'_> {
    /// Adds the files that a search compares others with: its results show whether they exist, and how old they are.
    pub(crate) fn add_find_tests(&self, words: &[&str], touches: &mut Vec<Touch>) {
        let before = touches.len();
        for pair in words.windows(2) {
            // `-newermt` is given a time.
            let by_file =
                pair[0].strip_prefix("-newer").is_some_and(|kinds| kinds.len() == 2 && !kinds.ends_with('t'));
            if by_file || COMPARED.contains(&pair[0]) {
                self.add(touches, pair[1], Depth::One, true);
            }
            // Before the expression, as BSD has it.
            if pair[0] == "-f" {
                self.add(touches, pair[1], Depth::All, true);
            }
        }
        touches.iter_mut().skip(before).for_each(|touch| touch.names_only = true);
    }

    /// Adds the files that a search deletes: by their name, or all that it finds.
    pub(crate) fn add_find_deletions(&self, words: &[&str], touches: &mut Vec<Touch>) {
        let found = find_parts(words);
        if !found.deletes {
            return;
        }
        let plain = !words.iter().any(|word| matches!(*word, "-o" | "-or" | "!" | "-not" | ","));
        let named = words.windows(2).find(|pair| pair[0] == "-name" && plain).map(|pair| pair[1]);
        let starts = if found.starts.is_empty() { vec!["."] } else { found.starts };
        for start in starts {
            match named.filter(|name| !name.contains(UNKNOWN)) {
                Some(name) => {
                    let folders = self.gate.absolute_paths(start, self.from);
                    let folders = folders.iter().map(|folder| text(&normal(Path::new(folder))));
                    touches.extend(folders.map(|folder| Touch {
                        target: TouchTarget::Ending { folder, path: name.to_owned() },
                        reads: false,
                        sure: false,
                        ..Touch::spelled(start)
                    }));
                }
                None => self.add(touches, start, Depth::All, false),
            }
        }
    }
}
