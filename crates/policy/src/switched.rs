//! Options of the shell with which the same line means other files or another folder.

use lathe_bash::{Script, SimpleCommand, Word};

use crate::gate::Gate;

/// Options that are on in the shell a line runs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShellSwitches {
    /// True if patterns mean hidden names too: `dotglob`, or a `GLOBIGNORE`.
    pub hidden_names: bool,
    /// True if `cd NAME` goes to the folder in the variable NAME, where there is no folder NAME: `cdable_vars`.
    pub folder_variables: bool,
}

impl ShellSwitches {
    /// Options that may be on after a line ran. One that the line switches off again counts as on.
    pub fn after(self, line: &str) -> Self {
        self.or(Self::by_line(line, &lathe_bash::read(line)))
    }

    fn or(self, other: Self) -> Self {
        Self {
            hidden_names: self.hidden_names || other.hidden_names,
            folder_variables: self.folder_variables || other.folder_variables,
        }
    }

    /// Options that a line may switch on itself, for itself or for a shell that it starts.
    fn by_line(line: &str, script: &Script) -> Self {
        let plain: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let named = |words: &[&str]| words.iter().any(|word| plain.contains(word));
        // `shopt -s $x`
        let is_open = |command: &SimpleCommand| {
            let words = || command.words.iter().skip(1);
            let sets = |word: &Word| {
                word.literal().is_some_and(|word| word.starts_with(['-', '+']) && word.contains('O'))
            };
            let takes = match command.program_name() {
                Some("shopt") => true,
                Some("bash") => words().any(sets),
                Some(_) | None => false,
            };
            takes && words().any(|word| word.literal().is_none())
        };
        let any = script.commands.iter().any(is_open);
        Self {
            hidden_names: any || named(&["dotglob", "globdots", "GLOBIGNORE"]),
            folder_variables: any || named(&["cdable_vars"]),
        }
    }
}

impl Gate {
    /// The gate for a line that switches on more than is on before it.
    pub(crate) fn switched_by(&self, line: &str, script: &Script) -> Option<Self> {
        let own = ShellSwitches::by_line(line, script);
        let switched = self.switched.or(own);
        (switched != self.switched).then(|| Self { switched, ..self.clone() })
    }
}
