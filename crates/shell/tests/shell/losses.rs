//! Lines that destroy, run for real behind walls of level 3 without the gate: outside the workspace nothing differs.
//!
//! SAFETY: they run only over a throw-away overlay of this machine, which `losses/outer.sh` builds in namespaces of
//! its own, as a user without rights outside. The test that runs them looks at its mounts before the first line.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lathe_shell::place_ax;
use lathe_workspace::{
    CaptureLimits, Fence, Jail, JailLimits, JailPlan, JailProfile, Level, Spawn, WorkspaceError, capture,
    find_program, find_walls,
};

const OUTER: &str = include_str!("losses/outer.sh");
const LINES: &str = include_str!("../../../policy/tests/corpus/destroying.txt");
/// The number of lines, spread evenly over the file.
const COUNT: usize = 60;
/// A line that has done nothing by then waits for something.
const LIMITS: CaptureLimits = CaptureLimits { time: Duration::from_secs(3), keep: 4096 };
/// The attempts to start a line.
const TRIES: usize = 50;
/// The variable with the file of the lines, which is set over the overlay only.
const PLACE: &str = "LATHE_TEST_LOSSES";

/// The variable that makes a hole in the walls.
const HOLE: &str = "LATHE_TEST_HOLE";

/// Lines that only fill the machine with processes have a test of limits.
fn is_flood(line: &str) -> bool {
    line.contains(":|:") || line.contains("| f &")
}

/// Tells whether every mount of this process is the throw-away overlay or holds no files of the machine.
fn is_thrown_away() -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let kind =
        |line: &str| line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next().map(str::to_owned));
    let is_root = |line: &&str| line.split(' ').nth(4) == Some("/");
    let root_is_overlay = table.lines().filter(is_root).all(|line| kind(line).as_deref() == Some("overlay"));
    let others = table.lines().filter_map(kind);
    root_is_overlay
        && table.lines().any(|line| is_root(&line))
        && others.into_iter().all(|kind| ["overlay", "tmpfs", "proc", "devtmpfs"].contains(&kind.as_str()))
}

/// Runs the lines. Without the overlay it does nothing: the tests below start it over one.
#[tokio::test(flavor = "multi_thread")]
async fn lines_over_an_overlay() {
    let Ok(lines) = std::env::var(PLACE) else { return };
    assert!(is_thrown_away(), "the lines run nowhere but over the overlay");
    let folder = Path::new("/srv/lathe-losses");
    let ax = place_ax(Path::new("/tmp/lathe")).unwrap();
    let bubblewrap = find_program("bwrap", folder);
    assert!(bubblewrap.is_some(), "bubblewrap is not installed: scripts/test installs it");
    let found = find_walls(&ax, bubblewrap).await;
    assert_eq!(found.level, Level::Walls, "{:?}", found.missing);
    for (at, line) in fs::read_to_string(lines).unwrap().lines().enumerate() {
        let root = folder.join(format!("worlds/{at}"));
        let layer = Path::new("/tmp").join(format!("layer-{at}"));
        for path in [root.join(".git/hooks"), root.join("sub"), layer.join("upper"), layer.join("work")] {
            fs::create_dir_all(path).unwrap();
        }
        for name in ["a.txt", "sub/b.txt", ".git/config", ".git/HEAD"] {
            fs::write(root.join(name), "content\n").unwrap();
        }
        let plan = JailPlan {
            profile: JailProfile::Workspace,
            root: root.clone(),
            ax: ax.clone(),
            writable: std::env::var_os(HOLE).map(|_| folder.join("precious")).into_iter().collect(),
            hidden: vec!["/tmp/lathe".into()],
            home: Some(folder.join("home")),
            layer: Some(layer),
        };
        let limits = JailLimits { processes: 200, ..JailLimits::default() };
        let jail = Jail::new(plan, found.clone()).unwrap().limited_to(limits);
        let line = if line.contains("<<") { line.replace("\\n", "\n") } else { line.to_owned() };
        let env =
            [("HOME", "/srv/lathe-losses/home"), ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")];
        let what = Spawn {
            argv: ["/bin/bash", "-c", line.as_str()].map(Into::into).to_vec(),
            cwd: root,
            env: env.map(|(name, value)| (name.into(), value.into())).to_vec(),
            fence: Fence::default(),
            shown: Vec::new(),
        };
        let mut ran = capture(&jail, what.clone(), b"", LIMITS, std::future::pending()).await;
        // A machine that is full of the processes of other tests starts none for a while.
        for _ in 0..TRIES {
            if !matches!(ran, Err(WorkspaceError::Spawn { .. })) {
                break;
            }
            tokio::time::sleep(LIMITS.time / 30).await;
            ran = capture(&jail, what.clone(), b"", LIMITS, std::future::pending()).await;
        }
        assert!(matches!(ran, Ok(_) | Err(WorkspaceError::Limit(_))), "{line}: {ran:?}");
    }
    let is_lost =
        |world: &Path| ["a.txt", "sub/b.txt", ".git/config"].iter().any(|name| !world.join(name).exists());
    let lost =
        fs::read_dir(folder.join("worlds")).unwrap().filter(|world| is_lost(&world.as_ref().unwrap().path()));
    println!("{} workspaces lost files", lost.count());
}

/// The lines of the corpus that are run.
fn chosen() -> Vec<&'static str> {
    let all: Vec<&str> =
        LINES.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
    let spread = all.iter().step_by(all.len() / COUNT).copied();
    spread.filter(|line| !is_flood(line)).take(COUNT).collect()
}

/// Runs lines over an overlay and returns what was said. None where nothing can be mounted, which `scripts/test` tells.
fn over_an_overlay(user: &str, chosen: &[&str], has_hole: bool) -> Option<String> {
    if std::env::var_os("LATHE_TEST_WITHOUT_MOUNTS").is_some() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    fs::write(&lines, chosen.join("\n")).unwrap();
    let (script, place) = (folder.path().join("outer.sh"), folder.path().join("place"));
    fs::write(&script, OUTER).unwrap();
    fs::create_dir(&place).unwrap();
    let done = Command::new("unshare")
        .args(["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc", "sh"])
        .args([&script, &place, &std::env::current_exe().unwrap()])
        .args(["losses::lines_over_an_overlay", user])
        .arg(&lines)
        .envs(has_hole.then_some((HOLE, "1")))
        .current_dir("/")
        .output()
        .unwrap_or_else(|error| panic!("unshare is needed for this test: {error}"));
    Some(String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
}

fn check(user: &str) {
    let chosen = chosen();
    assert!(chosen.len() + 3 >= COUNT, "{}", chosen.len());
    let Some(said) = over_an_overlay(user, &chosen, false) else { return };
    assert!(
        said.contains("1 passed") && said.contains("the lines ran") && said.contains("nothing differs"),
        "{said}"
    );
    // They do run: some of those about the workspace destroy it before they are stopped.
    let lost = said.lines().find_map(|line| line.strip_suffix(" workspaces lost files")).unwrap();
    let lost = lost.rsplit(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(lost > 0, "{said}");
}

#[test]
fn destroying_lines_of_root_change_nothing_outside_the_workspace() {
    check("root");
}

#[test]
fn destroying_lines_of_another_user_change_nothing_outside_the_workspace() {
    check("nobody");
}

#[test]
fn a_hole_in_the_walls_shows_as_a_loss() {
    let line = "rm -rf /srv/lathe-losses/precious/file";
    for user in ["root", "nobody"] {
        let Some(said) = over_an_overlay(user, &[line], true) else { return };
        assert!(said.contains("the lines ran") && !said.contains("nothing differs"), "{said}");
        assert!(said.contains("lathe-losses/precious/file"), "{said}");
        let Some(said) = over_an_overlay(user, &[line], false) else { return };
        assert!(said.contains("nothing differs"), "{said}");
    }
}
