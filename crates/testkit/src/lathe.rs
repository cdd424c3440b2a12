//! The real binary, in a home of its own and never for longer than it may.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use crate::eventually;
use crate::server::FakeModel;
use crate::wires::Wire;

/// The time for which a dead program's pipes may stay open. If they stay open longer, it left a process.
const PIPES_CLOSE: Duration = Duration::from_secs(60);

/// A command line of `lathe`. Clones share one home, so a later command finds the sessions of an earlier one.
#[derive(Debug, Clone)]
pub struct Lathe {
    binary: PathBuf,
    homes: Arc<TempDir>,
    dir: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    has_walls: bool,
    input: Option<Vec<u8>>,
    timeout: Duration,
}

impl Lathe {
    /// In a new home, with nothing of this process's environment but PATH.
    pub fn new(binary: impl AsRef<Path>) -> Self {
        let homes = TempDir::new().expect("a temporary folder can be made");
        let user = homes.path().join("user");
        std::fs::create_dir(&user).expect("a folder can be made");
        Self {
            // It is started from another folder.
            binary: std::path::absolute(binary).expect("the binary has a path"),
            dir: user,
            homes: Arc::new(homes),
            arguments: Vec::new(),
            environment: Vec::new(),
            has_walls: false,
            input: None,
            timeout: crate::eventually::PATIENCE,
        }
    }

    /// The program's `LATHE_HOME`.
    pub fn home(&self) -> PathBuf {
        self.homes.path().join("lathe")
    }

    /// With the sandbox that users have. Without this call there is none: most tests are about what Lathe itself
    /// holds back.
    #[must_use]
    pub fn behind_walls(self) -> Self {
        Self { has_walls: true, ..self }
    }

    fn sandbox(&self) -> Option<(&'static str, &'static str)> {
        (!self.has_walls).then_some(("LATHE_SANDBOX", "off"))
    }

    #[must_use]
    pub fn in_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.dir = dir.as_ref().to_owned();
        self
    }

    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    #[must_use]
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Adds the flags that make it talk to `model`.
    #[must_use]
    pub fn with_model(self, model: &FakeModel) -> Self {
        self.args(["--model-base-url", &model.base_url(), "--model", "fake"]).args(["--api-key", model.key()])
    }

    /// The same over any wire, set up as the documentation says: provider, key and address by their variables.
    #[must_use]
    pub fn with_wire(self, model: &FakeModel, wire: Wire) -> Self {
        let provider = wire.provider();
        let variable = |what: &str| format!("{}_{what}", provider.to_uppercase());
        self.env(variable("API_KEY"), model.key()).env(variable("BASE_URL"), model.base_url_for(wire)).args([
            "--provider",
            provider,
            "--model",
            "fake",
        ])
    }

    /// The program's standard input; empty by default.
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// After this it is killed and the test fails.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(&self) -> FinishedLathe {
        self.spawn().wait()
    }

    /// The bare command, for a caller with its own ideas of output and waiting. This value must outlive it: the
    /// home is gone with the last clone.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(&self.arguments)
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("HOME", self.homes.path().join("user"))
            .env("LATHE_HOME", self.home())
            .envs(self.sandbox())
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it.
    #[track_caller]
    pub fn spawn(&self) -> RunningLathe {
        let mut command = self.command();
        command
            .stdin(match self.input {
                Some(_) => Stdio::piped(),
                None => Stdio::null(),
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{} cannot be started: {error}", self.binary.display()));
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), self.input.clone()) {
            // It may end without reading everything, and that is its right.
            std::thread::spawn(move || pipe.write_all(&input));
        }
        RunningLathe {
            stdout: Capture::of(child.stdout.take().expect("stdout is a pipe")),
            stderr: Capture::of(child.stderr.take().expect("stderr is a pipe")),
            child,
            started,
            timeout: self.timeout,
            line: format!("{} {:?}", self.binary.display(), self.arguments),
            _homes: Arc::clone(&self.homes),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Interrupt,
    Terminate,
    Kill,
    Hangup,
    Quit,
}

/// A program that runs. Dropping it kills it.
#[derive(Debug)]
pub struct RunningLathe {
    child: Child,
    started: Instant,
    timeout: Duration,
    stdout: Capture,
    stderr: Capture,
    line: String,
    _homes: Arc<TempDir>,
}

impl RunningLathe {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills this process, and waits until it has released its files and locks. A busy machine takes its time for
    /// that.
    pub fn kill9(&self) {
        self.kill(Signal::Kill);
        let process = PathBuf::from(format!("/proc/{}", self.pid()));
        let lives = || {
            let threads = std::fs::read_dir(process.join("task")).map_or(0, Iterator::count);
            let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
            threads > 1 || stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
        };
        let began = Instant::now();
        while lives() && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends a signal to this process only.
    pub fn kill(&self, signal: Signal) {
        let name = match signal {
            Signal::Interrupt => "INT",
            Signal::Terminate => "TERM",
            Signal::Kill => "KILL",
            Signal::Hangup => "HUP",
            Signal::Quit => "QUIT",
        };
        // The shell's own `kill` is everywhere, and this crate stays without a dependency for signals. A process that
        // has already ended makes it fail, which is fine.
        let _ = Command::new("sh")
            .args(["-c", &format!("kill -{name} {}", self.pid())])
            .stderr(Stdio::null())
            .status();
    }

    pub fn stdout_so_far(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr_so_far(&self) -> String {
        self.stderr.text()
    }

    /// Waits until the text appears on stdout.
    #[track_caller]
    pub fn wait_for_stdout(&self, text: &str, within: Duration) {
        let has_ended =
            || !std::path::Path::new(&format!("/proc/{}", self.child.id())).exists() || self.is_zombie();
        let shown = || self.stdout.text().contains(text);
        eventually(within, &format!("`{text}` on stdout of {}", self.line), || {
            assert!(shown() || !has_ended() || shown(), "{} ended: {}", self.line, self.stderr.text());
            shown()
        });
    }

    /// Tells whether the program has ended and was not waited for yet.
    fn is_zombie(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    }

    /// Waits for the end of the program and of its output.
    #[track_caller]
    pub fn wait(mut self) -> FinishedLathe {
        let status = loop {
            match self.child.try_wait().expect("a child can be waited for") {
                Some(status) => break status,
                None if self.started.elapsed() > self.timeout => self.fail("did not end in time"),
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let elapsed = self.started.elapsed();
        let ended = Instant::now();
        while !(self.stdout.at_end() && self.stderr.at_end()) {
            if ended.elapsed() > PIPES_CLOSE {
                self.fail("ended, but some process still holds its output open");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        FinishedLathe {
            code: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            elapsed,
            line: self.line.clone(),
        }
    }

    #[track_caller]
    fn fail(&mut self, what: &str) -> ! {
        let _ = self.child.kill();
        panic!(
            "{} {what}\n--- stdout\n{}\n--- stderr\n{}",
            self.line,
            self.stdout.text(),
            self.stderr.text()
        );
    }
}

impl Drop for RunningLathe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that ended.
#[derive(Debug, Clone)]
pub struct FinishedLathe {
    /// The exit code; 128 and the number of the signal if one ended it, as shells say it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
    line: String,
}

impl FinishedLathe {
    /// Panics with everything that was printed unless it ended with `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "exit code of {}\n--- stdout\n{}\n--- stderr\n{}",
            self.line, self.stdout, self.stderr
        );
        self
    }

    /// The lines of `--output stream-json`.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        events(&self.stdout)
    }
}

/// JSON lines as values.
#[track_caller]
pub fn events(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in this line: {line}")))
        .collect()
}

/// The bytes a pipe has brought so far.
#[derive(Debug)]
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                into.lock().extend_from_slice(&buffer[..count]);
            }
        });
        Self { bytes, thread }
    }

    fn text(&self) -> String {
        let bytes = self.bytes.lock();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn at_end(&self) -> bool {
        self.thread.is_finished()
    }
}
