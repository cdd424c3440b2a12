//! Positional words after `shift`.

use crate::read::ScriptReader;
use crate::script::Word;

impl ScriptReader {
    /// Lets a positional word be any of those after it, as after `shift`.
    pub(crate) fn bind_shifted(&mut self) {
        let all: Vec<Word> = self.script.values.get("@").cloned().unwrap_or_default();
        for number in 1..=all.len().min(9) {
            let behind = all.iter().skip(number).take(64).cloned();
            self.script.values.entry(number.to_string()).or_default().extend(behind);
        }
    }
}
