//! Lines behind walls: at level 3 a line is asked about only for what the walls around its processes do not hold.
//!
//! The walls hold the system, other folders, keys, Lathe's own folder and the network, and what is lost in the
//! workspace can be undone. So a script, an unknown program or a word that is known only when the line runs needs no
//! question: whatever hides in it happens inside. Asked about is what can be read in the line and reaches out of the
//! walls, or what cannot be undone by the workspace alone: other machines, places outside, git's history and
//! configuration, and programs that leave the walls. Rejected was a decision by effects: a compiler and a download
//! have the same ones.
//!
//! A denial stays a denial. Only rules that guess from a text what it may do are left out where the walls surely hold
//! what they guess ([`Gate::has_walls`]).

mod git;
mod loopback;
mod network;
mod packages;
mod question;
mod texts;
mod writes;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lathe_protocol::{Actor, Decision, Mode};

use crate::gate::Gate;
use crate::reading::Region;
use crate::rules::Setting;
use crate::touch::{Touch, TouchTarget};

pub(crate) use question::{WalledCommand, always_asks};

/// The rule of a decision that allows something because the walls hold it.
pub(crate) const WALLS: &str = "walls";

/// The rules that ask about what the walls do not hold.
const NETWORK: &str = "walls.network";
const OUTSIDE: &str = "walls.outside";
const GIT: &str = "walls.git";
const LEAVES: &str = "walls.leaves";

/// The walls around the processes that run a session's lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Walls {
    /// Below level 3. A line that runs outside of the session's walls is decided with this too.
    #[default]
    None,
    /// Level 3: the system is read-only, there is no network, and keys, sockets and Lathe's own folder are masked.
    Around {
        /// The folders that lines may write, in addition to the workspace and the private `/tmp`.
        writable: Vec<PathBuf>,
    },
}

/// The private folder for temporary files.
const TEMP: &str = "/tmp";

/// The caches in a home folder. Behind walls they are a private layer over the user's own.
const CACHES: [&str; 26] = [
    ".cargo",
    ".rustup",
    ".cache",
    ".npm",
    ".m2",
    ".gradle",
    ".ivy2",
    ".sbt",
    "go",
    ".go",
    ".gopath",
    ".yarn",
    ".pnpm-store",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/virtualenvs",
    ".virtualenvs",
    ".nuget",
    ".bun",
    ".deno",
    ".gem",
    ".bundle",
    ".composer/cache",
    ".cabal",
    ".stack",
    ".hex",
];

/// Devices and descriptors that every process may write.
const STREAMS: [&str; 10] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/tty",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/fd",
    "/proc/self/fd",
    "/dev/ptmx",
];

impl Gate {
    /// Tells whether the walls hold the system, other folders and Lathe's own folder, whatever a line does.
    pub(crate) fn has_walls(&self) -> bool {
        match self.walls {
            Walls::Around { .. } => true,
            Walls::None => false,
        }
    }

    /// Tells whether a line is asked about only for what the walls do not hold.
    pub(crate) fn is_walled(&self, actor: Actor, mode: Mode) -> bool {
        let by_actor = match actor {
            Actor::Model | Actor::Project => true,
            Actor::Person => false,
        };
        let by_mode = match mode {
            Mode::Default | Mode::AutoEdit => true,
            Mode::Plan | Mode::FullAuto => false,
        };
        self.has_walls() && by_actor && by_mode
    }

    /// Tells whether a line may write a place, which is absolute and without `.` and `..`, and is `spelled` so in the
    /// line.
    pub(crate) fn is_writable(&self, path: &Path, spelled: &str) -> bool {
        if STREAMS.iter().any(|stream| path.starts_with(stream)) {
            return true;
        }
        let own = path.starts_with(&self.root) || self.is_private(path, spelled);
        own && match self.region(path, crate::Depth::One) {
            Region::LatheHome => false,
            Region::Keys => path.starts_with(&self.root),
            Region::Inside | Region::Public | Region::Elsewhere => true,
        }
    }

    /// Tells whether a place outside the workspace is the session's own: the folder for temporary files, a cache, or
    /// a folder that the user added.
    pub(crate) fn is_private(&self, path: &Path, spelled: &str) -> bool {
        let Walls::Around { writable } = &self.walls else { return false };
        let cache = |home: &PathBuf| CACHES.iter().any(|cache| path.starts_with(home.join(cache)));
        (path.starts_with(TEMP) && !self.is_neighbour(path, spelled))
            || writable.iter().any(|folder| path.starts_with(folder))
            || self.user_home.as_ref().is_some_and(cache)
    }

    /// Tells whether a place lies beside a workspace that itself lies among temporary files: a folder that a user has
    /// there, and not a file for a moment.
    fn is_neighbour(&self, path: &Path, spelled: &str) -> bool {
        let Some(above) = self.root.parent().filter(|above| above.starts_with(TEMP)) else { return false };
        let climbs = !Path::new(spelled).starts_with(TEMP) || Path::new(spelled).starts_with(&self.root);
        climbs || (above != Path::new(TEMP) && path.starts_with(above))
    }
}

/// The class of a place that a line reads, where the class counts. Behind walls a place counts that is known to be
/// outside and not the session's own; a folder with Lathe's own in it counts for the rest of it.
pub(crate) fn region(
    gate: &Gate,
    setting: Setting<'_>,
    touch: &Touch,
    region: Region,
    places: &[String],
) -> Option<Region> {
    if !setting.is_walled {
        return Some(region);
    }
    let mut paths = places.iter().map(Path::new);
    let region = match region {
        Region::LatheHome if !paths.clone().any(|path| path.starts_with(&gate.home)) => {
            paths.clone().map(|path| gate.region_beside_home(path)).max()?
        }
        region => region,
    };
    // A word that may be a path counts where it would be a key itself, not a folder with keys somewhere in it.
    let is_key = |path: &Path| gate.region(path, crate::Depth::One) == Region::Keys;
    if region == Region::Keys && !touch.sure && !paths.clone().any(is_key) {
        return None;
    }
    let mut own =
        || touch.target == TouchTarget::Unknown || paths.all(|path| gate.is_private(path, &touch.shown));
    match region {
        Region::Elsewhere if own() => None,
        region => Some(region),
    }
}

/// Tells whether the walls surely prevent what a denial is about: what is outside of the workspace, disks, Lathe's own
/// folder, and processes of others.
pub(crate) fn is_held(denied: &Decision) -> bool {
    match denied.rule.as_str() {
        "guard.home" | "guard.disk" | "guard.kill-all" => true,
        "guard.destroy" => denied.reason != crate::guard::DELETES_HERE,
        _ => false,
    }
}

/// The line with quotes around a lone dash before a heredoc: `python3 - <<'EOF'`. The grammar swallows the dash, which
/// makes the text one that cannot be read. To bash both are the same where nothing before it is quoted or expanded.
pub(crate) fn with_quoted_dash(line: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || " \t\n_-./=:,+@%&;|".contains(c);
    let dash = line.match_indices("<<").next().and_then(|(at, _)| {
        let (before, heredoc) = line.split_at(at);
        let dash = before.trim_end_matches([' ', '\t']).strip_suffix('-')?;
        let lone = dash.ends_with([' ', '\t']) && dash.len() + 1 < before.len();
        (lone && !heredoc.starts_with("<<<") && dash.chars().all(is_plain)).then_some(dash.len())
    });
    match dash.and_then(|at| Some((line.get(..at)?, line.get(at + 1..)?))) {
        Some((before, behind)) => Cow::Owned(format!("{before}'-'{behind}")),
        None => Cow::Borrowed(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_dash_before_a_heredoc_is_quoted_where_that_changes_nothing() {
        for (line, quoted) in [
            ("python3 - <<'EOF'\nx\nEOF", "python3 '-' <<'EOF'\nx\nEOF"),
            ("cd a && X=1 python - << E\nx\nE", "cd a && X=1 python '-' << E\nx\nE"),
            ("git commit -F - <<E\na - <<b\nE", "git commit -F '-' <<E\na - <<b\nE"),
        ] {
            assert_eq!(with_quoted_dash(line), quoted);
        }
        for line in [
            "cat <<E\na - <<b\nE",
            "echo 'a - <<b'",
            "echo \"a - <<b\"",
            "echo $(x - <<E\nE\n)",
            "cat <<- E\nE",
            "x- <<E\nE",
            "make -f - <<< x",
            "python3 -<<E\nE",
            "ls",
        ] {
            assert_eq!(with_quoted_dash(line), line);
        }
    }
}
