//! The absolute paths that a spelled name may mean, from the folders that a line may be in.

use std::path::Path;

use crate::dot_patterns::meanings;
use crate::file_words::unescaped;
use crate::gate::Gate;
use crate::places::{HERE, LATHE, behind_own_folder, outside_proc};
use crate::reach::FOLDERS;

impl Gate {
    /// The absolute paths that a spelling may mean, with `.` and `..` still in them.
    pub(crate) fn absolute_paths(&self, spelling: &str, from: &[String]) -> Vec<String> {
        meanings(spelling).iter().flat_map(|meaning| self.absolute_paths_as_spelled(meaning, from)).collect()
    }

    fn absolute_paths_as_spelled(&self, spelling: &str, from: &[String]) -> Vec<String> {
        let spelling = match spelling.strip_prefix("file:") {
            // Sets and lists in an address are the program's own.
            Some(address) if address.contains(['{', '[']) => return Vec::new(),
            Some(address) => unescaped(address.trim_start_matches("//").trim_start_matches("localhost")),
            None => spelling.to_owned(),
        };
        let spelling = spelling.replace(LATHE, &self.home.to_string_lossy());
        let spelling = behind_own_folder(&spelling).unwrap_or_else(|| outside_proc(&spelling));
        let one = |spelling: &str| -> Option<String> {
            if let Some(rest) = spelling.strip_prefix(HERE) {
                let here = self.here.as_deref().unwrap_or(&self.root);
                return Some(format!("{}{rest}", here.display()));
            }
            if let Some(rest) =
                spelling.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))
            {
                // It is not known whose home it is: then it counts as another user's.
                let home = self.user_home.as_deref().unwrap_or(Path::new("/home/~"));
                return Some(format!("{}{rest}", home.display()));
            }
            spelling.starts_with('/').then(|| spelling.to_owned())
        };
        if let Some(path) = one(&spelling) {
            return vec![path];
        }
        let root = [self.root.display().to_string()];
        let from = if from.is_empty() { &root[..] } else { from };
        // A line that may be in so many folders reads something unknown.
        let few = from.iter().filter(|_| from.len() <= FOLDERS);
        let joined = few.filter_map(|from| Some(format!("{}/{spelling}", one(from)?)));
        joined.filter_map(|path| one(&outside_proc(&path))).collect()
    }
}
