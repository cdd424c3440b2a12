//! The gate from outside: rule files, shell lines, modes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod commits;
mod composed;
mod compounds;
mod corpus;
mod cut;
mod denials;
mod differential;
mod docs;
mod dotted;
mod eased;
mod generated;
mod git_files;
mod guarded;
mod handed;
mod inside;
mod kind_lines;
mod kinds;
mod later;
mod linked_programs;
mod looked_for;
mod lost;
mod many;
mod meanings;
mod options;
mod other_shells;
mod own_binary;
mod printed;
mod reading;
mod reads;
mod regexes;
mod rules;
mod runs_behind;
mod sets;
mod split;
mod texts;
mod twice;
mod values;
mod walls;
mod whole_folders;
mod writers;

/// The gate of a session in `/srv/work/repo`, on a disk that nothing is known of.
pub(crate) fn gate(headless: bool) -> lathe_policy::Gate {
    lathe_policy::Gate {
        home: "/home/me/.local/share/lathe".into(),
        root: "/srv/work/repo".into(),
        user_home: Some("/home/me".into()),
        here: Some("/srv/work/repo".into()),
        outputs: None,
        headless,
        disk: lathe_policy::OnDisk::default(),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
    }
}
