//! A host with a few commands that show what they were given.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lathe_protocol::BoxFuture;
use lathe_shell::{CallerGone, CommandCall, CommandHost, CommandIo, Shell};
use lathe_workspace::LocalProcesses;

use crate::harness::{TestShell, options};

/// The calls that a host has received.
#[derive(Default)]
pub struct Seen {
    pub begun: AtomicUsize,
    /// Commands that were told that their caller has gone.
    pub cancelled: AtomicUsize,
    pub lines: Mutex<Vec<Option<u64>>>,
}

#[derive(Default)]
pub struct TestHost {
    pub seen: Arc<Seen>,
}

const NAMES: [&str; 12] =
    ["args", "upper", "fail", "slow", "flood", "where", "face", "panics", "hold", "view", "jobs", "take"];

impl CommandHost for TestHost {
    fn names(&self) -> Vec<String> {
        NAMES.map(str::to_owned).to_vec()
    }

    fn run(&self, call: CommandCall, mut io: CommandIo) -> BoxFuture<'static, u8> {
        self.seen.begun.fetch_add(1, Ordering::SeqCst);
        self.seen.lines.lock().unwrap().push(call.line);
        let seen = Arc::clone(&self.seen);
        Box::pin(async move {
            tokio::select! {
                code = answer(&call, &mut io) => code.unwrap_or(1),
                () = call.cancel.cancelled() => {
                    seen.cancelled.fetch_add(1, Ordering::SeqCst);
                    130
                }
            }
        })
    }
}

async fn answer(call: &CommandCall, io: &mut CommandIo) -> Result<u8, CallerGone> {
    let words: Vec<&[u8]> = call.argv.iter().map(|word| word.as_bytes()).collect();
    let number = || words.get(1).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    match words[0] {
        b"upper" => {
            while let Some(piece) = io.read().await? {
                io.out(piece.to_ascii_uppercase()).await?;
            }
        }
        // Prints so many pieces of its input, and then no more of it.
        b"take" => {
            for _ in 0..number().unwrap_or(1) {
                let piece = io.read().await?.unwrap_or_default();
                io.out(piece).await?;
            }
        }
        b"fail" => {
            io.err(b"failed\n").await?;
            return Ok(number().unwrap_or(1) as u8);
        }
        b"slow" => tokio::time::sleep(Duration::from_secs(600)).await,
        b"flood" => loop {
            io.out(b"flood\n".repeat(20_000)).await?;
        },
        b"where" => io.out([call.cwd.as_os_str().as_bytes(), b"\n"].concat()).await?,
        b"face" => {
            let text = format!("{:?} {:?} {:03o}\n", call.output, call.input, call.caller.unwrap().umask);
            io.out(text).await?;
        }
        b"panics" => panic!("as it was asked to"),
        b"hold" => {
            let _hold = call.clock.hold();
            tokio::time::sleep(Duration::from_millis(number().unwrap_or(0))).await;
        }
        // Any other name shows the words it was given.
        _ => {
            let shown: Vec<Vec<u8>> = words.iter().map(|word| [b"<", *word, b">"].concat()).collect();
            io.out([shown.join(&b' '), b"\n".to_vec()].concat()).await?;
        }
    }
    Ok(0)
}

/// A shell with these commands.
pub async fn shell_with_commands() -> (TestShell, Arc<Seen>) {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::default();
    let seen = Arc::clone(&host.seen);
    let mut options = options(folder.path());
    options.commands = Some(Arc::new(host));
    let shell = Shell::start(Arc::new(LocalProcesses), options).await.unwrap();
    (TestShell { shell, folder }, seen)
}

pub async fn commands() -> TestShell {
    shell_with_commands().await.0
}

/// The folder of the session, from the path that a shell of it has.
pub async fn session_folder(sh: &mut TestShell) -> std::path::PathBuf {
    let path = sh.out("printf %s \"${PATH%%:*}\"").await;
    let bin = std::path::Path::new(OsStr::new(&path));
    bin.parent().unwrap().to_owned()
}
