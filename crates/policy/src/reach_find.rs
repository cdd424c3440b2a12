//! Files that a search deletes, by the names it looks for.

use std::path::Path;

use crate::gate::normal;
use crate::guard::find_parts;
use crate::places::UNKNOWN;
use crate::reach::Reacher;
use crate::reading::Depth;
use crate::touch::{Touch, What, text};

impl Reacher<'_> {
    /// Adds the files that a search deletes: by their name, or all that it finds.
    pub(crate) fn deleted_by_find(&self, words: &[&str], touches: &mut Vec<Touch>) {
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
                    let folders = self.gate.joined(start, self.from);
                    let folders = folders.iter().map(|folder| text(&normal(Path::new(folder))));
                    touches.extend(folders.map(|folder| Touch {
                        what: What::Ending { folder, path: name.to_owned() },
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
