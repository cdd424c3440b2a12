//! Positional words after `shift`.

use crate::read::Reader;
use crate::script::Word;

impl Reader {
    /// After `shift`, a positional word may be any of those that stood behind it.
    pub(crate) fn shifted(&mut self) {
        let all: Vec<Word> = self.script.values.get("@").cloned().unwrap_or_default();
        for number in 1..=all.len().min(9) {
            let behind = all.iter().skip(number).take(64).cloned();
            self.script.values.entry(number.to_string()).or_default().extend(behind);
        }
    }
}
