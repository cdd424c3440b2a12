//! Standing approvals, stored as rules of the user: one for each "always".

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use lathe_agent::ApprovalStore;
use lathe_policy::{Rulebook, StandingApproval};
use lathe_protocol::Digest;
use lathe_tools::APPROVALS_FILE;
use lathe_workspace::Workspace;

use crate::error::HostError;
use crate::files::own::{own_text, own_write};
use crate::home::Home;
use crate::rules::Rules;
use crate::session::extras::Extras;

const HEAD: &str =
    "# What you allowed for ever. `lathe policy list` shows it, `lathe policy revoke N` takes it back.\n";

/// Begins the line with the checksum of the rules: a bit that flips on disk must not allow something else.
const SUM: &str = "# Checksum of what follows; whoever edits the rules by hand removes this line: ";

/// The file of standing approvals in Lathe's folder, and its home.
pub(crate) struct ApprovalFile(PathBuf, Home);

impl Rules {
    pub(crate) fn approvals(&self) -> ApprovalFile {
        ApprovalFile(self.home().policy().join(APPROVALS_FILE), self.home().clone())
    }

    /// The rules of a session without the standing approvals, which the session reads itself. Approvals that cannot
    /// be read now are an error.
    pub(crate) fn base_rules(&self, workspace: &Workspace, extras: &Extras) -> Result<Rulebook, HostError> {
        self.approvals().read().map_err(HostError::Policy)?;
        Ok(lathe_tools::exclude_listed(self.rules_without_approvals(workspace, extras)?, &extras.exclude))
    }

    /// Descriptions of the standing approvals, in the order in which they were given.
    pub fn standing_approvals(&self) -> Result<Vec<String>, HostError> {
        let grants = self.approvals().read().map_err(HostError::Policy)?;
        Ok(grants.iter().map(StandingApproval::description).collect())
    }

    /// Revokes the approval of this number, counted from 1. Returns its description.
    pub fn revoke(&self, number: usize) -> Result<String, HostError> {
        let file = self.approvals();
        let mut grants = file.read().map_err(HostError::Policy)?;
        let count = grants.len();
        let Some(at) = number.checked_sub(1).filter(|at| *at < count) else {
            return Err(HostError::Policy(match count {
                0 => "nothing was allowed for ever".to_owned(),
                _ => format!("there is no answer {number}; `lathe policy list` shows 1 to {count}"),
            }));
        };
        let revoked = grants.remove(at);
        file.write(&grants).map_err(HostError::Policy)?;
        Ok(revoked.description())
    }
}

impl ApprovalFile {
    fn read(&self) -> Result<Vec<StandingApproval>, String> {
        match own_text(&self.0) {
            Ok(Some(text)) => {
                if !is_as_written(&text) {
                    return Err(format!(
                        "{} is not what Lathe wrote: its checksum differs, so nothing that it allows counts. If you edited \
                         it, remove the line with the checksum; otherwise move the file away and approve again",
                        self.0.display()
                    ));
                }
                StandingApproval::parse_rules(
                    &self.0.display().to_string(),
                    &text,
                    &lathe_tools::known_names([]),
                )
                .map_err(|error| error.to_string())
            }
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(format!("{}: {error}", self.0.display())),
        }
    }

    /// Replaces the whole file at once, so that no process ever reads half of it.
    fn write(&self, grants: &[StandingApproval]) -> Result<(), String> {
        self.1.refuse_inside_session("a standing approval").map_err(|error| error.to_string())?;
        let wrong = |error: std::io::Error| format!("{}: {error}", self.0.display());
        let folder = self.0.parent().ok_or_else(|| "there is no folder for it".to_owned())?;
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let rules: Vec<String> = grants.iter().map(StandingApproval::to_rule).collect();
        let rules = rules.join("\n");
        own_write(&self.0, format!("{HEAD}{SUM}{}\n{rules}", sum(&rules)).as_bytes()).map_err(wrong)
    }
}

/// Tells whether the rules are those that the checksum was made of. A file without a checksum was edited by hand, or
/// is an older one.
fn is_as_written(text: &str) -> bool {
    let Some((sum_line, rules)) = text.split_once(SUM).and_then(|(_, rest)| rest.split_once('\n')) else {
        return !text.contains("# Checksum of ");
    };
    sum_line.trim() == sum(rules)
}

fn sum(rules: &str) -> String {
    Digest::of(rules.as_bytes()).short().to_owned()
}

impl ApprovalStore for ApprovalFile {
    fn remember(&self, grants: &[StandingApproval]) -> Result<(), String> {
        let mut all = self.read()?;
        let known = all.len();
        for grant in grants {
            if !all.contains(grant) {
                all.push(grant.clone());
            }
        }
        if all.len() == known { Ok(()) } else { self.write(&all) }
    }

    fn mark(&self) -> String {
        // The file is always replaced as a whole, or edited by hand.
        self.0.metadata().map_or_else(
            |error| error.kind().to_string(),
            |found| {
                let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
                format!("{} {} {times:?}", found.ino(), found.len())
            },
        )
    }

    fn rules(&self) -> Result<(String, String), String> {
        let rules: Vec<String> = self.read()?.iter().map(StandingApproval::to_rule).collect();
        Ok((self.0.display().to_string(), rules.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_answers_allow_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let file =
            ApprovalFile(home.path().join("policy").join(APPROVALS_FILE), Home::at(home.path().to_owned()));
        let words = ["git", "push", "origin", "side"].map(str::to_owned).to_vec();
        let workspace = "/work/space".to_owned();
        let grants = vec![
            StandingApproval::Command { words, workspace, folder: Some("/work/space/sub".to_owned()) },
            StandingApproval::Writes {
                tool: "write".to_owned(),
                paths: vec!["/work/space/a.txt".to_owned()],
            },
        ];
        file.write(&grants).unwrap();
        assert_eq!(file.read().unwrap(), grants);
        let whole = std::fs::read(&file.0).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                std::fs::write(&file.0, &flipped).unwrap();
                assert!(file.read().map_or(true, |read| read == grants), "bit {bit} of byte {at}");
            }
            // A cut leaves only whole approvals that were given, or none.
            std::fs::write(&file.0, &whole[..at]).unwrap();
            assert!(file.read().map_or(true, |read| grants.starts_with(&read)), "cut at {at}");
        }
        // A user who edits it by hand removes the checksum.
        let text = String::from_utf8(whole).unwrap();
        let edited: String =
            text.lines().filter(|line| !line.starts_with(SUM)).map(|line| format!("{line}\n")).collect();
        std::fs::write(&file.0, edited.replace("side", "other")).unwrap();
        assert_eq!(file.read().unwrap().len(), 2);
    }
}
