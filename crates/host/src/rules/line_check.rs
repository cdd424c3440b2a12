//! Rule files that apply in a folder, and decisions of the gate about a line by them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_agent::ApprovalStore as _;
use lathe_policy::{CommandDecision, Gate, OnDisk, Rulebook, Tier, Walls};
use lathe_protocol::{Actor, CommandDecided, Decision, Mode};
use lathe_tools::{APPROVALS_FILE, CallGate, CommandCheck, OutsideTool, Toolbox, known_names};
use lathe_workspace::{LocalTree, Workspace, content_of, dangling_link_error, is_dangling, open_regular};

use crate::archive::replica::Replica;
use crate::error::HostError;
use crate::files::own::required_text;
use crate::rules::Rules;
use crate::rules::git_rules;
use crate::rules::trust::text_of;
use crate::session::extras::Extras;

/// The rules of a project. They need no trust, because they cannot loosen anything.
const PROJECT_RULES: &str = ".lathe/policy.toml";

/// Rules that can be tried on lines.
pub struct PolicyCheck {
    gate: Gate,
    rules: Arc<Rulebook>,
    /// The commands of the agent, if lines are decided about as in a session.
    commands: Option<CommandCheck>,
}

/// The decision about a line, with that about each command that can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCheckResult {
    pub decision: Decision,
    pub commands: Vec<CommandDecided>,
}

impl Rules {
    /// The rules of a file alone, or those that apply here: the built-in ones and the user's (`policy/*.toml`). Lines
    /// are decided about as for a shell that has the commands of the agent, behind the walls of a level of the sandbox.
    pub fn policy_check(
        &self,
        rules: Option<&Path>,
        extras: &Extras,
        level: u8,
    ) -> Result<PolicyCheck, HostError> {
        let workspace = self.home().workspace(&std::env::current_dir().unwrap_or_default());
        let walls = match level {
            ..3 => Walls::None,
            3.. => Walls::Around { writable: Vec::new() },
        };
        let gate = Gate { headless: false, walls, ..self.gate(&workspace) };
        Ok(match rules {
            // A file is tried for no particular folder: a relative name in a line means no place then.
            Some(file) => PolicyCheck {
                gate: Gate { here: None, user_home: None, disk: OnDisk::default(), ..gate },
                rules: Arc::new(with_file(
                    Rulebook::empty().with_names(known_names(extras.field_names())),
                    file,
                    None,
                )?),
                commands: None,
            },
            None => {
                let fields = extras.declared_tools(&workspace, self.home().path())?;
                let rules =
                    self.rulebook(&workspace, extras)?.with_own_commands(lathe_tools::built_in_commands());
                let rules = rules.with_own_commands(fields.iter().map(OutsideTool::own_command));
                let rules = Arc::new(lathe_tools::exclude_listed(rules, &extras.exclude));
                let commands = Some(CommandCheck::new(Some(self.home().memory()), fields));
                PolicyCheck { gate, rules, commands }
            }
        })
    }

    /// Reads every rule file that applies in a folder, so that a mistake is reported before anything runs.
    pub fn check_rules(&self, root: &Path, extras: &Extras) -> Result<(), HostError> {
        self.rulebook(&self.home().workspace(root), extras).map(drop)
    }

    /// Checks the rules and everything else that would stop every session in a folder, without starting a program.
    pub fn check_session(&self, root: &Path, extras: &Extras) -> Result<(), HostError> {
        self.check_rules(root, extras)?;
        extras.check(&self.home().workspace(root), self.home().path())
    }

    /// The files in the folder of the user's rules that are not read, so that a surface can warn about rules in them.
    pub fn unread_rules(&self) -> Vec<PathBuf> {
        self.rule_files().map(|(_, unread)| unread).unwrap_or_default()
    }

    /// The files of the user's rules: those that are read, and those that are not because of their names.
    fn rule_files(&self) -> Result<(Vec<PathBuf>, Vec<PathBuf>), HostError> {
        let folder = self.home().policy();
        let wrong = |error: std::io::Error| HostError::Policy(format!("{}: {error}", folder.display()));
        let listed = match std::fs::read_dir(&folder) {
            Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => match is_dangling(&folder) {
                true => Err(dangling_link_error()),
                false => Ok(Vec::new()),
            },
            Err(error) => Err(error),
        };
        let mut files = listed.map_err(wrong)?;
        files.sort();
        files.retain(|path| path.file_name().is_none_or(|name| name != APPROVALS_FILE));
        let is_rules =
            |path: &PathBuf| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
        Ok(files.into_iter().partition(is_rules))
    }

    /// The gate for what a user does without a model: limited by the guard only, unless a mode is named.
    pub(crate) fn call_gate(
        &self,
        workspace: &Workspace,
        mode: Option<Mode>,
        toolbox: &Toolbox,
        extras: &Extras,
    ) -> Result<CallGate, HostError> {
        let rules = toolbox.session_rules(self.rulebook(workspace, extras)?);
        Ok(CallGate {
            gate: self.gate(workspace),
            rules: Arc::new(lathe_tools::exclude_listed(rules, &extras.exclude)),
            actor: if mode.is_some() { Actor::Model } else { Actor::Person },
            mode: mode.unwrap_or(Mode::Default),
            fresh: None,
        })
    }

    /// The rules that apply in a folder: the built-in ones, the user's, and the project's, which only tighten.
    pub(crate) fn rulebook(&self, workspace: &Workspace, extras: &Extras) -> Result<Rulebook, HostError> {
        let rules = self.rules_without_approvals(workspace, extras)?;
        match self.approvals().rules() {
            Ok((name, text)) => rules
                .with_file(Tier::User, &name, &text)
                .map_err(|error| HostError::Policy(error.to_string())),
            Err(reason) => Err(HostError::Policy(reason)),
        }
    }

    /// The same without the standing approvals, which may change while a session runs.
    pub(crate) fn rules_without_approvals(
        &self,
        workspace: &Workspace,
        extras: &Extras,
    ) -> Result<Rulebook, HostError> {
        // Without them something would be allowed that the project denies.
        let unread =
            || HostError::Policy("a project's rules are only read in a folder of this machine".to_owned());
        let root = workspace.local().map(LocalTree::root).ok_or_else(unread)?;
        let (files, _) = self.rule_files()?;
        let rules = Rulebook::builtin().with_names(known_names(extras.field_names()));
        let replica = extras.replica.as_ref();
        let rules = with_admin(rules, Path::new(ADMIN), replica)?;
        let rules = files.iter().try_fold(rules, |rules, file| with_file(rules, file, replica))?;
        let rules = lathe_tools::allow_listed(rules, &extras.allowed).map_err(HostError::Policy)?;
        let own = [
            ("git", git_rules::rules(root)),
            ("own folder", self.home().linked_rules()),
            ("protected names", protected_target_rules(root)),
            ("replay", replica.map(Replica::denial_rule)),
        ];
        let own = own.into_iter().filter_map(|(name, text)| Some((name, text?)));
        let rules = own.into_iter().try_fold(rules, |rules, (name, text)| {
            rules.with_file(Tier::Project, name, &text).map_err(|error| HostError::Policy(error.to_string()))
        })?;
        let wrong = |reason: String| HostError::Policy(format!("{PROJECT_RULES}: {reason}"));
        let folders = [Some(root), replica.map(|replica| replica.original.as_path())].into_iter().flatten();
        folders.into_iter().try_fold(rules, |rules, folder| {
            match text_of(&LocalTree::at(folder.to_owned(), None), Path::new(PROJECT_RULES)).map_err(wrong)? {
                Some(text) => rules
                    .with_file(Tier::Project, PROJECT_RULES, &adapted_rules(text, replica))
                    .map_err(|error| HostError::Policy(error.to_string())),
                None => Ok(rules),
            }
        })
    }
}

/// Rules that deny changes to the targets of protected names that are links, and to the paths that git's
/// configuration names. None if there are none.
fn protected_target_rules(root: &Path) -> Option<String> {
    let places = path_patterns(&lathe_workspace::protected_targets(root, lathe_git::configured_paths));
    (!places.is_empty()).then(|| {
        format!(
            "[[rule]]\ndecision = \"deny\"\nkind = [\"edit\", \"delete\", \"move\"]\npath = [{}]\n\
             reason = \"a protected name is a link that leads there, or the configuration of git names it\"\n",
            places.join(", ")
        )
    })
}

/// Real places as patterns of rules, quoted. A character that has a meaning in a pattern is replaced by `*`.
pub(crate) fn path_patterns(places: &[PathBuf]) -> Vec<String> {
    let pattern = |place: &PathBuf| {
        let plain = |c: char| if "*?[]{}!\\\"".contains(c) || c.is_control() { '*' } else { c };
        let text: String = place.to_string_lossy().chars().map(plain).collect();
        format!("\"{text}\"")
    };
    places.iter().map(pattern).collect()
}

/// A sentence about a `.latheignore` in a folder that cannot be used. None if it can be used, or if there is none.
pub fn unread_ignore_file(folder: &Path) -> Option<String> {
    lathe_search::unread_own_file(folder).map(|reason| lathe_search::unread_sentence(folder, folder, &reason))
}

/// The rules of the machine's administrator; no other user may be able to write them.
const ADMIN: &str = "/etc/lathe/policy.toml";

/// Largest size of the administrator's rules, in bytes.
const ADMIN_LARGEST: u64 = 1 << 20;

/// Adds the administrator's rules, if there are any. A file that other users could have written is refused, not left
/// out: they may have removed rules from it.
fn with_admin(rules: Rulebook, file: &Path, replica: Option<&Replica>) -> Result<Rulebook, HostError> {
    use std::os::unix::fs::MetadataExt as _;
    let refused = |reason: String| HostError::Policy(format!("{}: {reason}", file.display()));
    let wrong = |error: std::io::Error| refused(error.to_string());
    // The owner is taken from the file that is read, because its name may lead elsewhere by now.
    let opened = match open_regular(file) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(rules),
        Err(error) => return Err(wrong(error)),
    };
    let folder = file.parent().map(Path::metadata).transpose().map_err(wrong)?;
    for found in [Some(opened.metadata().map_err(wrong)?), folder].into_iter().flatten() {
        if found.uid() != 0 || found.mode() & 0o022 != 0 {
            let words = "the administrator's rules are refused: the file and its folder must belong to root, and nobody else may write them";
            return Err(refused(words.to_owned()));
        }
    }
    let text = content_of(opened, ADMIN_LARGEST).map_err(wrong)?;
    let text = String::from_utf8(text).map_err(|_| refused("it is not UTF-8 text".to_owned()))?;
    let name = file.display().to_string();
    rules
        .with_file(Tier::Admin, &name, &adapted_rules(text, replica))
        .map_err(|error| HostError::Policy(error.to_string()))
}

/// Rules adapted to the copy of a workspace, if the session works in one.
fn adapted_rules(text: String, replica: Option<&Replica>) -> String {
    match replica {
        Some(replica) => replica.rules(&text),
        None => text,
    }
}

pub(crate) fn with_file(
    rules: Rulebook,
    file: &Path,
    replica: Option<&Replica>,
) -> Result<Rulebook, HostError> {
    let name = file.display().to_string();
    let text = required_text(file).map_err(|error| HostError::Policy(format!("{name}: {error}")))?;
    let text = adapted_rules(text, replica);
    rules.with_file(Tier::User, &name, &text).map_err(|error| HostError::Policy(error.to_string()))
}

impl PolicyCheck {
    /// Decides about a line, and about each command of the agent in it as when it runs.
    pub fn decide_line(&self, mode: Mode, line: &str) -> LineCheckResult {
        let mut decided = self.gate.decide_line(&self.rules, Actor::Model, mode, line);
        if let Some(commands) = &self.commands {
            let (gate, rules) = (self.gate.clone(), Arc::clone(&self.rules));
            let call_gate = CallGate { gate, rules, actor: Actor::Model, mode, fresh: None };
            commands.decide(&call_gate, &mut decided);
        }
        let each = decided.commands.into_iter();
        let commands = each.map(|CommandDecision { words, decision, effects, .. }| CommandDecided {
            words,
            decision,
            effects,
        });
        LineCheckResult { decision: decided.decision, commands: commands.collect() }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use lathe_protocol::Verdict;

    use super::*;

    const RULES: &str = "[[rule]]\ndecision = \"deny\"\ncommand = [\"git\"]\nreason = \"not here\"\n";

    #[test]
    fn the_administrators_rules_hold_if_nobody_else_could_have_written_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.toml");
        assert!(with_admin(Rulebook::builtin(), &file, None).is_ok(), "there need not be any");
        std::fs::write(&file, RULES).unwrap();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(folder.path(), 0o755);
        for bad in [0o666, 0o664, 0o646] {
            mode(&file, bad);
            assert!(with_admin(Rulebook::builtin(), &file, None).is_err(), "{bad:o}");
        }
        mode(&file, 0o644);
        let rules = with_admin(Rulebook::builtin(), &file, None);
        if !nix::unistd::geteuid().is_root() {
            return assert!(rules.is_err(), "it belongs to somebody else");
        }
        let gate = Gate {
            home: "/h".into(),
            root: "/w".into(),
            user_home: None,
            here: None,
            outputs: None,
            headless: false,
            disk: lathe_policy::OnDisk::default(),
            switched: lathe_policy::ShellSwitches::default(),
            walls: lathe_policy::Walls::None,
        };
        // A user's own rule does not outweigh it.
        let user = "[[rule]]\ndecision = \"allow\"\ncommand = [\"git status\"]\n";
        let rules = rules.unwrap().with_file(Tier::User, "mine", user).unwrap();
        let decided = gate.decide_line(&rules, Actor::Model, Mode::FullAuto, "git status").decision;
        assert_eq!((decided.verdict, decided.reason.contains("not here")), (Verdict::Deny, true));
        mode(folder.path(), 0o777);
        assert!(with_admin(Rulebook::builtin(), &file, None).is_err(), "its folder");
    }
}
