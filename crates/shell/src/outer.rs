//! Detection of outer Lathe shells, below which this process runs.
//!
//! A program that a line starts may be Lathe itself. It detects that here, by its ancestors: each shell's supervisor,
//! and the keeper above it, is a child subreaper, so every process that a line starts stays below both, even with
//! `setsid`, `nohup` and a cleared environment. The variable that every process of a line has is a second mark, for
//! systems without `/proc`. A line that makes a process namespace of its own, or asks a service of the machine to
//! start something, is not below its shell any more; only a sandbox can prevent that.

use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::sweep;

/// The number of attempts to read the ancestors. A parent may end meanwhile, and its child has another one then.
const TRIES: usize = 50;

/// The shells of Lathe above this process, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OuterShells {
    /// This process was not started by a shell of Lathe.
    None,
    /// The homes of the Lathes whose shells are above this process, as far as they are known.
    Below(Vec<PathBuf>),
}

impl OuterShells {
    /// Inspects the ancestors of this process.
    pub fn find() -> Self {
        let has_mark = std::env::var_os(sweep::VARIABLE).is_some();
        match ancestors() {
            Ancestors::Known(pids) => {
                let homes: Vec<Option<PathBuf>> = pids.into_iter().filter_map(supervisor_home).collect();
                match homes.is_empty() && !has_mark {
                    true => Self::None,
                    false => Self::Below(homes.into_iter().flatten().collect()),
                }
            }
            // Ancestors that change all the time hide something.
            Ancestors::Changing => Self::Below(Vec::new()),
            Ancestors::NoProc if has_mark => Self::Below(Vec::new()),
            Ancestors::NoProc => Self::None,
        }
    }
}

enum Ancestors {
    Known(Vec<i32>),
    Changing,
    NoProc,
}

fn ancestors() -> Ancestors {
    let own = std::process::id().cast_signed();
    if parent(own).is_none() {
        return Ancestors::NoProc;
    }
    match (0..TRIES).find_map(|_| chain(own)) {
        Some(pids) => Ancestors::Known(pids),
        None => Ancestors::Changing,
    }
}

/// The ancestors of a process, up to the first process or one of another user that `/proc` hides. None if they
/// changed meanwhile.
fn chain(from: i32) -> Option<Vec<i32>> {
    let (mut pids, mut child) = (Vec::new(), from);
    loop {
        let above = parent(child)?;
        if above <= 0 {
            return Some(pids);
        }
        if parent(above).is_none() {
            // Hidden if it still is the parent; gone if it is not.
            return (parent(child)? == above).then_some(pids);
        }
        pids.push(above);
        child = above;
    }
}

/// The parent of a process; 0 if it has none.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    // In one read of a fixed size: every agent command waits for this.
    let mut stat = [0; 512];
    let count = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    let stat = stat.get(..count)?;
    // The name before it may contain any byte.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The home of the Lathe whose supervisor or keeper a process is. None inside if that is unknown. None if the process
/// is something else.
fn supervisor_home(pid: i32) -> Option<Option<PathBuf>> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = words.split(|byte| *byte == 0);
    let program = Path::new(OsStr::from_bytes(words.next()?));
    if program.file_name() != Some(OsStr::new("ax")) || words.next() != Some(b"supervise") {
        return None;
    }
    // The path of the program is `HOME/ax/HASH/ax`: see `place_ax`.
    let real = fs::read_link(format!("/proc/{pid}/exe"));
    let real = real.unwrap_or_else(|_| program.to_owned());
    let folder = real.ancestors().nth(2).filter(|folder| folder.file_name() == Some(OsStr::new("ax")));
    Some(folder.and_then(Path::parent).map(Path::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ancestors_of_this_process_end_at_the_first_one() {
        let own = std::process::id().cast_signed();
        let pids = chain(own).unwrap();
        assert_eq!(pids.first().copied(), parent(own).filter(|pid| *pid > 0));
        assert!(!pids.contains(&own) && !pids.contains(&0));
        assert_eq!(supervisor_home(own), None);
    }
}
