//! The path table, each row by every operation: nothing outside is read or changed, nothing hangs, and nothing harmless is
//! refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_protocol::Digest;
use lathe_testkit::sample;
use lathe_workspace::{Expect, FileKind, FileOp, Files as _, LocalFiles, WorkspaceError};

use crate::paths_table::{Case, Is, TABLE};
use crate::paths_world::{CANARY, World, picture};
use crate::support::Mount;

const NEW: &str = "written\n";
/// Far beyond what any operation here takes.
const LIMIT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Stat,
    Read,
    Part,
    Open,
    Walk,
    List,
    Real,
    New,
    Over,
    Remove,
}

const OPS: [Op; 10] =
    [Op::Stat, Op::Read, Op::Part, Op::Open, Op::Walk, Op::List, Op::Real, Op::New, Op::Over, Op::Remove];

/// The result of an operation in one word and, if it has one, its text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Gave {
    Kind(FileKind),
    Text(String),
    Names,
    Real(PathBuf),
    Done,
    Missing,
    Exists,
    IsFolder,
    Outside,
    Protected,
    Special,
    Stale,
    Loop,
    Io(std::io::ErrorKind),
}

fn wanted(op: Op, is: Is, world: &World) -> Gave {
    use Gave as G;
    let real = |below: &str| {
        if below.is_empty() { world.root.clone() } else { world.root.join(world.path(below)) }
    };
    let no_folder = G::Io(std::io::ErrorKind::NotADirectory);
    match (is, op) {
        (Is::Outside, _) => G::Outside,
        (Is::Loop, _) => G::Loop,
        (Is::Bad(kind), _) => G::Io(kind),
        (Is::File(..) | Is::Protected(..), Op::Stat) => G::Kind(FileKind::File),
        (Is::File(text, _) | Is::Protected(text, _), Op::Read | Op::Open) => G::Text(text.to_owned()),
        (Is::File(text, _) | Is::Protected(text, _), Op::Part) => G::Text(text[..1].to_owned()),
        (Is::File(..) | Is::Protected(..) | Is::Special(_), Op::Walk | Op::List) => no_folder,
        (Is::File(_, at) | Is::Protected(_, at), Op::Real) => G::Real(real(at)),
        (Is::Folder(at) | Is::ProtectedFolder(at) | Is::Special(at), Op::Real) => G::Real(real(at)),
        (Is::File(..), Op::New) => G::Exists,
        (Is::File(..), Op::Over | Op::Remove) => G::Done,
        (
            Is::Protected(..) | Is::ProtectedFolder(_) | Is::ProtectedMissing,
            Op::New | Op::Over | Op::Remove,
        ) => G::Protected,
        (Is::Folder(_) | Is::ProtectedFolder(_), Op::Stat) => G::Kind(FileKind::Directory),
        (Is::Folder(_) | Is::ProtectedFolder(_), Op::Walk | Op::List) => G::Names,
        (Is::Folder(_) | Is::ProtectedFolder(_), _) => G::IsFolder,
        (Is::Special(_), Op::Stat) => G::Kind(FileKind::Special),
        (Is::Special(_), _) => G::Special,
        (Is::Missing(_), Op::New) => G::Done,
        (Is::MissingFolder, Op::New | Op::Over | Op::Remove) => G::IsFolder,
        (Is::Missing(_), Op::Over | Op::Remove) => G::Stale,
        (Is::Missing(_) | Is::MissingFolder | Is::ProtectedMissing | Is::Nowhere, _) => G::Missing,
    }
}

async fn give(files: &LocalFiles, path: &Path, op: Op, expect: Expect) -> Gave {
    let text = |bytes: Vec<u8>| Gave::Text(String::from_utf8_lossy(&bytes).into_owned());
    let write = |expect| {
        files.apply(vec![FileOp::Write {
            path: path.to_owned(),
            expect,
            content: NEW.as_bytes().to_vec().into(),
        }])
    };
    let gave = match op {
        Op::Stat => files.stat(path).await.map(|stat| Gave::Kind(stat.kind)),
        Op::Read => files.read(path, None).await.map(text),
        Op::Part => files.read(path, Some(0..1)).await.map(text),
        Op::Open => files.open(path).map(|mut file| {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
            text(bytes)
        }),
        Op::Walk => files.walk(path, 9).await.map(|entries| {
            let out = |entry: &lathe_workspace::WalkEntry| entry.path.ends_with("canary");
            assert!(!entries.iter().any(out), "{entries:?}");
            Gave::Names
        }),
        Op::List => files.list(path).await.map(|names| {
            for named in names.iter().filter(|named| named.name.to_string_lossy().contains("out")) {
                assert_eq!((named.kind, named.bytes), (FileKind::Special, 0), "{named:?}");
            }
            Gave::Names
        }),
        Op::Real => files.real(path).await.map(Gave::Real),
        Op::New => write(Expect::Absent).await.map(|_| Gave::Done),
        Op::Over => write(expect).await.map(|_| Gave::Done),
        Op::Remove => {
            files.apply(vec![FileOp::Remove { path: path.to_owned(), expect }]).await.map(|_| Gave::Done)
        }
    };
    gave.unwrap_or_else(|error| {
        assert!(!error.to_string().contains("CANARY"));
        match error {
            WorkspaceError::NotFound(_) => Gave::Missing,
            WorkspaceError::Exists(_) => Gave::Exists,
            WorkspaceError::IsDirectory(_) => Gave::IsFolder,
            WorkspaceError::Outside(_) => Gave::Outside,
            WorkspaceError::Protected(_) => Gave::Protected,
            WorkspaceError::Special(_) => Gave::Special,
            WorkspaceError::Stale(_) => Gave::Stale,
            WorkspaceError::Io { source, .. }
                if source.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) =>
            {
                Gave::Loop
            }
            WorkspaceError::Io { source, .. } => Gave::Io(source.kind()),
            other => panic!("{other:?}"),
        }
    })
}

/// A world and what it was like when it was made.
struct Fresh {
    world: World,
    outside: Picture,
    inside: Picture,
}

type Picture = Vec<(PathBuf, u64, u32, Vec<u8>)>;

impl Fresh {
    fn new() -> Self {
        let world = World::new();
        Self { outside: world.outside(), inside: picture(&world.root), world }
    }
}

/// Runs one row by all operations and tells what was wrong.
async fn check(
    case: &Case,
    path: &str,
    open: fn(PathBuf) -> LocalFiles,
    fresh: &mut Fresh,
    wrong: &mut Vec<String>,
) {
    for op in OPS {
        let world = &fresh.world;
        if case.path.ends_with("dev") && !world.has_device {
            return eprintln!("not tested, no device can be made: {}", case.name);
        }
        let content = match case.is {
            Is::File(text, _) | Is::Protected(text, _) => text,
            _ => "",
        };
        let expect = Expect::Hash(Digest::of(content.as_bytes()));
        let (files, spelled) = (open(world.root.clone()), world.path(path));
        let gave = tokio::time::timeout(LIMIT, give(&files, &spelled, op, expect)).await;
        let before = wrong.len();
        judge(case, path, op, gave.ok(), fresh, wrong);
        let changed = matches!(wanted(op, case.is, &fresh.world), Gave::Done) || wrong.len() > before;
        if changed || op == Op::Remove && matches!(case.removed, Is::File(..)) {
            *fresh = Fresh::new();
        }
    }
}

fn judge(case: &Case, path: &str, op: Op, gave: Option<Gave>, fresh: &Fresh, wrong: &mut Vec<String>) {
    let mut say = |what: String| wrong.push(format!("{} ({path:?}) {op:?}: {what}", case.name));
    let world = &fresh.world;
    let wanted = wanted(op, if op == Op::Remove { case.removed } else { case.is }, world);
    if gave.as_ref() != Some(&wanted) {
        say(format!("{gave:?}, not {wanted:?}"));
    }
    if world.outside() != fresh.outside {
        say("something outside changed".to_owned());
    }
    if !matches!(op, Op::New | Op::Over | Op::Remove) {
        return;
    }
    let now = picture(&world.root);
    if now.iter().any(|(path, ..)| path.to_string_lossy().contains(".lathe-")) {
        say("a private file is left".to_owned());
    }
    if gave != Some(Gave::Done) {
        if now != fresh.inside {
            say("refused, but something inside changed".to_owned());
        }
        return;
    }
    match (op, case.is) {
        (Op::Remove, _) if fs::symlink_metadata(world.root.join(world.path(path))).is_ok() => {
            say("still there".to_owned());
        }
        (Op::New | Op::Over, Is::File(_, at) | Is::Missing(at)) => {
            let now = fs::read_to_string(world.root.join(world.path(at))).unwrap_or_default();
            if now != NEW {
                say(format!("holds {now:?}"));
            }
        }
        _ => {}
    }
}

async fn whole_table(open: fn(PathBuf) -> LocalFiles) {
    let (mut wrong, mut fresh) = (Vec::new(), Fresh::new());
    for case in sample(TABLE, 3) {
        check(case, case.path, open, &mut fresh, &mut wrong).await;
        if !case.path.starts_with(['/', '{']) && !case.path.is_empty() {
            check(case, &format!("{{W}}/{}", case.path), open, &mut fresh, &mut wrong).await;
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(TABLE.len() >= 90);
}

#[tokio::test]
async fn every_path_by_every_operation() {
    whole_table(LocalFiles::new).await;
}

#[tokio::test]
async fn every_path_by_every_operation_without_openat2() {
    whole_table(LocalFiles::stepwise).await;
}

#[test]
fn names_of_the_table_are_unique() {
    let names: std::collections::BTreeSet<&str> = TABLE.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), TABLE.len());
}

#[tokio::test]
async fn a_root_that_is_a_link_can_be_named_both_ways() {
    let world = World::new();
    let link = world.base.join("link");
    symlink(&world.root, &link).unwrap();
    let files = LocalFiles::new(link.clone());
    for path in [link.join("a.txt"), world.root.join("a.txt"), link.join("l_abs"), "a.txt".into()] {
        assert_eq!(files.read(&path, None).await.unwrap(), b"inside\n", "{path:?}");
        assert_eq!(files.real(&path).await.unwrap(), world.root.join("a.txt"));
    }
    assert_eq!(files.root(), world.root.as_path());
    let protected =
        FileOp::Write { path: link.join(".git/x"), expect: Expect::Absent, content: Default::default() };
    assert!(matches!(files.apply(vec![protected]).await, Err(WorkspaceError::Protected(_))));
}

#[tokio::test]
async fn a_repository_below_a_protected_name_is_an_ordinary_root() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join(".lathe/worktrees/x");
    fs::create_dir_all(&root).unwrap();
    let files = LocalFiles::new(root.clone());
    let write = |path: PathBuf| FileOp::Write { path, expect: Expect::Absent, content: Default::default() };
    let refused = files.apply(vec![write(root.join("a"))]).await;
    assert!(matches!(refused, Err(WorkspaceError::Protected(_))), "{refused:?}");
    fs::create_dir(root.join(".git")).unwrap();
    fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    files.apply(vec![write(root.join("a")), write("b".into())]).await.unwrap();
    assert!(matches!(files.apply(vec![write(".git/a".into())]).await, Err(WorkspaceError::Protected(_))));
}

#[tokio::test]
async fn more_roots_are_read_and_written_and_nothing_between() {
    let world = World::new();
    let files = LocalFiles::with_roots(world.root.clone(), vec![world.base.join("out/sub"), "/none".into()]);
    let canary = world.base.join("out/sub/canary");
    assert_eq!(files.read(&canary, None).await.unwrap(), CANARY.as_bytes());
    assert_eq!(files.read(Path::new("d/l_out/sub/canary"), None).await.unwrap(), CANARY.as_bytes());
    let new = world.base.join("out/sub/new");
    let write = |path: &Path| FileOp::Write {
        path: path.to_owned(),
        expect: Expect::Absent,
        content: Default::default(),
    };
    files.apply(vec![write(&new), write(Path::new("new"))]).await.unwrap();
    assert!(new.exists() && world.root.join("new").exists());
    for path in ["out/canary", "out/new"].map(|name| world.base.join(name)) {
        assert!(matches!(files.read(&path, None).await, Err(WorkspaceError::Outside(_))));
        assert!(matches!(files.apply(vec![write(&path)]).await, Err(WorkspaceError::Outside(_))));
    }
}

#[tokio::test]
async fn without_a_root_nothing_is_found() {
    let files = LocalFiles::new("/nonexistent/root".into());
    for path in ["a", "/etc/passwd", "/nonexistent/root/a"] {
        assert!(
            matches!(files.read(Path::new(path), None).await, Err(WorkspaceError::NotFound(_))),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_root_made_anew_is_the_root_and_a_link_in_its_place_is_not() {
    for open in [LocalFiles::new, LocalFiles::stepwise] {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (root, away, out) = (base.join("ws"), base.join("away"), base.join("out"));
        fs::create_dir(&out).unwrap();
        fs::write(out.join("a"), CANARY).unwrap();
        let files = open(root.clone());
        let read = async || files.read(Path::new("a"), None).await;
        let write = async |path: PathBuf| {
            files
                .apply(vec![FileOp::Write { path, expect: Expect::Absent, content: Default::default() }])
                .await
        };
        assert!(matches!(read().await, Err(WorkspaceError::NotFound(_))));
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "first").unwrap();
        assert_eq!(read().await.unwrap(), b"first");
        fs::rename(&root, &away).unwrap();
        assert!(matches!(read().await, Err(WorkspaceError::NotFound(_))));
        assert!(matches!(write(root.join("b")).await, Err(WorkspaceError::NotFound(_))));
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "second").unwrap();
        assert_eq!(read().await.unwrap(), b"second");
        write("b".into()).await.unwrap();
        assert!(root.join("b").exists() && !away.join("b").exists());
        fs::remove_dir_all(&root).unwrap();
        symlink(&out, &root).unwrap();
        for path in ["a", "c"].map(PathBuf::from).into_iter().chain([root.join("a"), out.join("a")]) {
            assert!(files.read(&path, None).await.is_err(), "{path:?}");
            assert!(write(path).await.is_err());
        }
        assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(out.join("a")).unwrap(), CANARY);
    }
}

#[tokio::test]
async fn mounts_inside_are_inside_and_their_devices_special() {
    let world = World::new();
    let files = LocalFiles::new(world.root.clone());
    let other = world.base.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(world.root.join("bound"), "").unwrap();
    let Some(_device) = Mount::new(&["--bind"], Path::new("/dev/zero"), &world.root.join("bound")) else {
        return;
    };
    let read = tokio::time::timeout(LIMIT, files.read(Path::new("bound"), None)).await.unwrap();
    assert!(matches!(read, Err(WorkspaceError::Special(_))), "{read:?}");
    // The root under another name is the root.
    let Some(_root) = Mount::new(&["--bind"], &world.root, &other) else { return };
    assert_eq!(files.read(&other.join("d/b.txt"), None).await.unwrap(), b"inner\n");
    assert!(matches!(files.read(&other.join("l_out"), None).await, Err(WorkspaceError::Outside(_))));
}

#[tokio::test]
async fn a_private_file_is_private_until_it_is_whole() {
    use std::os::unix::fs::MetadataExt as _;
    let world = World::new();
    let files = LocalFiles::new(world.root.clone());
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let watcher = std::thread::spawn({
        let (root, stop) = (world.root.clone(), stop.clone());
        move || {
            let mut seen = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for entry in fs::read_dir(&root).unwrap().flatten() {
                    if !entry.file_name().to_string_lossy().starts_with(".lathe-") {
                        continue;
                    }
                    // The size is read first: it only grows.
                    let Ok(first) = fs::symlink_metadata(entry.path()) else { continue };
                    let whole = first.size() >= 8 << 20;
                    assert!(first.size() == 0 || whole || first.mode() & 0o077 == 0, "{:o}", first.mode());
                    seen += 1;
                }
            }
            seen
        }
    });
    for n in 0..4 {
        let content = vec![b'x'; 8 << 20];
        let op =
            FileOp::Write { path: format!("big{n}").into(), expect: Expect::Absent, content: content.into() };
        files.apply(vec![op]).await.unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(watcher.join().unwrap() > 0);
}
