//! A toolbox in a temporary folder that remembers what a session would: files seen and what tools asked to be given again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lathe_blobs::Blobs;
use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{
    Actor, Arguments, BoxFuture, CallFinished, CallId, Change, CommandRan, Digest, Mode, OutputStream, Raw,
    SeenFile, ToolCall, ToolErrorKind, Toolset,
};
use lathe_redact::Redactor;
use lathe_tools::{
    Asker, CallGate, Ledger, LiveOutput, LocalLedger, PreparedCall, Recalled, RunContext, Services,
    ShellPlan, Toolbox,
};
use lathe_workspace::Workspace;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Far beyond what any call here takes.
const LONG: Duration = Duration::from_secs(120);

pub struct Bench {
    pub toolbox: Toolbox,
    pub root: PathBuf,
    pub seen: BTreeMap<String, Digest>,
    pub memory: BTreeMap<&'static str, Raw>,
    pub line_seconds: u32,
    pub silent_seconds: Option<u32>,
    pub cancel: CancellationToken,
    pub asker: Option<Arc<dyn Asker>>,
    /// The run is cancelled when this text has been shown live.
    pub cancel_at: Option<&'static str>,
    live: Arc<Mutex<Vec<(OutputStream, String)>>>,
    /// In which commands of a shell line are judged.
    pub mode: Mode,
    pub ledger: Arc<Book>,
    gate: Gate,
    _folder: tempfile::TempDir,
}

/// A ledger that tests can inspect.
#[derive(Default)]
pub struct Book {
    pub ran: Mutex<Vec<CommandRan>>,
    notes: LocalLedger,
    /// The reason why the task may not end.
    pub unfinished: Mutex<Option<String>>,
}

impl Ledger for Book {
    fn recall<'a>(&'a self, tool: &'a str, paths: Vec<String>) -> BoxFuture<'a, Recalled> {
        self.notes.recall(tool, paths)
    }

    fn record<'a>(&'a self, call: &'a CallId, ran: CommandRan) -> BoxFuture<'a, ()> {
        self.ran.lock().unwrap().push(ran.clone());
        self.notes.record(call, ran)
    }

    fn may_end<'a>(&'a self) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { self.unfinished.lock().unwrap().clone().map_or(Ok(()), Err) })
    }
}

pub fn bash() -> Bench {
    Bench::new(Toolset::Bash, &[])
}

pub fn lathe() -> Bench {
    Bench::new(Toolset::Lathe, &[])
}

pub fn trae() -> Bench {
    Bench::new(Toolset::Trae, &[])
}

pub fn gemini() -> Bench {
    Bench::new(Toolset::Gemini, &[])
}

impl Bench {
    pub fn new(toolset: Toolset, secrets: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let blobs = folder.path().join("blobs");
        Self::at(toolset, secrets, root, blobs, folder)
    }

    pub fn at(
        toolset: Toolset,
        secrets: &[(&str, &str)],
        root: PathBuf,
        blobs: PathBuf,
        folder: tempfile::TempDir,
    ) -> Self {
        let make = |services| Toolbox::new(toolset, Arc::new(services));
        Self::made(secrets, here, root, blobs, folder, make)
    }

    /// A bench whose toolbox is made by the caller.
    pub fn with(make: impl FnOnce(Services) -> Toolbox) -> Self {
        Self::in_workspace(here, make)
    }

    /// The same in a workspace that the caller makes of the folder that processes know it by.
    pub fn in_workspace(
        workspace: impl FnOnce(&Path) -> Workspace,
        make: impl FnOnce(Services) -> Toolbox,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        let blobs = folder.path().join("blobs");
        Self::made(&[], workspace, root, blobs, folder, make)
    }

    fn made(
        secrets: &[(&str, &str)],
        workspace: impl FnOnce(&Path) -> Workspace,
        root: PathBuf,
        blobs: PathBuf,
        folder: tempfile::TempDir,
        make: impl FnOnce(Services) -> Toolbox,
    ) -> Self {
        let secrets = secrets.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C.UTF-8")];
        let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let services = Services::new(
            workspace(&root),
            Blobs::open(blobs).unwrap(),
            Arc::new(Redactor::new(secrets)),
            ShellPlan {
                start: lathe_shell::StartFolder::Any,
                home: home.clone(),
                shell: "/bin/bash".into(),
                env: env.map(|(name, value)| (name.into(), value.into())).to_vec(),
                memory: Some(folder.path().join("memory.md")),
            },
        );
        Self {
            toolbox: make(services),
            root,
            seen: BTreeMap::new(),
            memory: BTreeMap::new(),
            line_seconds: 60,
            silent_seconds: None,
            cancel: CancellationToken::new(),
            asker: None,
            cancel_at: None,
            live: Arc::default(),
            mode: Mode::FullAuto,
            ledger: Arc::default(),
            gate: Gate {
                home,
                root: "/".into(),
                user_home: None,
                here: None,
                outputs: None,
                headless: true,
                disk: lathe_policy::OnDisk::default(),
                switched: lathe_policy::ShellSwitches::default(),
                walls: lathe_policy::Walls::None,
            },
            _folder: folder,
        }
    }

    pub fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// Creates a file without the tools.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    pub fn get(&self, name: &str) -> String {
        String::from_utf8(std::fs::read(self.root.join(name)).unwrap()).unwrap()
    }

    pub fn exists(&self, name: &str) -> bool {
        self.root.join(name).exists()
    }

    pub fn prepare(&self, name: &str, arguments: Value) -> Result<PreparedCall, Box<CallFinished>> {
        self.prepare_text(name, &arguments.to_string())
    }

    pub fn prepare_text(&self, name: &str, arguments: &str) -> Result<PreparedCall, Box<CallFinished>> {
        self.toolbox.prepare(&ToolCall {
            id: CallId::new("c1"),
            name: name.to_owned(),
            arguments: Arguments::from_text(arguments),
            raw: None,
        })
    }

    /// Prepares, decides and runs a call, as a session does.
    pub async fn call(&mut self, name: &str, arguments: Value) -> CallFinished {
        let prepared = match self.prepare(name, arguments) {
            Ok(prepared) => prepared,
            Err(finished) => return *finished,
        };
        let decision = self.gate.decide(Actor::Model, Mode::FullAuto, &prepared.effects);
        let permit = self.gate.permit(&decision, &prepared.effects).unwrap();
        let paths = prepared.effects.reads.iter().chain(&prepared.effects.writes);
        let seen = paths.filter_map(|path| {
            self.seen.get(path).map(|hash| SeenFile { path: path.clone(), hash: hash.clone() })
        });
        let tool = prepared.tool;
        let context = RunContext {
            services: Arc::clone(self.toolbox.services()),
            call: CallId::new("c1"),
            live: self.watch(),
            cancel: self.cancel.clone(),
            seen: seen.collect(),
            memory: self.memory.get(tool).cloned(),
            shown: None,
            review: None,
            line_seconds: self.line_seconds,
            silent_seconds: self.silent_seconds,
            umask: None,
            handle: None,
            asker: self.asker.clone(),
            call_gate: CallGate {
                gate: self.gate.clone(),
                rules: Arc::new(Rulebook::builtin()),
                actor: Actor::Model,
                mode: self.mode,
                fresh: None,
            },
            ledger: Arc::clone(&self.ledger) as Arc<dyn Ledger>,
        };
        let running = self.toolbox.run(prepared, permit, context);
        let mut finished =
            tokio::time::timeout(LONG, running).await.unwrap_or_else(|_| panic!("{name} hangs"));
        for seen in &finished.seen {
            self.seen.insert(seen.path.clone(), seen.hash.clone());
        }
        if let Some(memory) = &finished.memory {
            self.memory.insert(tool, memory.clone());
        }
        finished.took_ms = 0;
        finished
    }

    /// The text of a call that must not fail, with the folder written as `/W`.
    pub async fn told(&mut self, name: &str, arguments: Value) -> String {
        let finished = self.call(name, arguments).await;
        assert_eq!(finished.error, None, "{}", finished.text);
        self.short(&finished.text)
    }

    /// Kind and text of a call that must fail.
    pub async fn refused(&mut self, name: &str, arguments: Value) -> (ToolErrorKind, String) {
        let finished = self.call(name, arguments).await;
        let Some(error) = finished.error else {
            panic!("{name} did not fail: {}", finished.text);
        };
        assert_eq!(finished.changes, []);
        (error.kind, self.short(&finished.text))
    }

    pub fn short(&self, text: &str) -> String {
        text.replace(&self.root.display().to_string(), "/W")
    }

    /// The output of one stream that was shown while it ran.
    pub fn shown(&self, of: OutputStream) -> String {
        let live = self.live.lock().unwrap();
        let texts = live.iter().filter(|(stream, _)| *stream == of);
        texts.map(|(_, text)| text.as_str()).collect()
    }

    pub fn blob(&self, digest: &Digest) -> Vec<u8> {
        let blobs = &self.toolbox.services().blobs;
        blobs.get(digest).unwrap().expect("the blob is stored")
    }

    /// Path, content before and content after.
    pub fn change(&self, change: &Change) -> (String, Option<String>, Option<String>) {
        let content = |digest: &Option<Digest>| {
            let bytes = |digest| if change.is_folder() { b"a folder".to_vec() } else { self.blob(digest) };
            digest.as_ref().map(|digest| String::from_utf8(bytes(digest)).unwrap())
        };
        assert_eq!(change.by, CallId::new("c1"));
        (self.short(&change.path), content(&change.before), content(&change.after))
    }

    fn watch(&self) -> LiveOutput {
        let (live, cancel, cancel_at) = (Arc::clone(&self.live), self.cancel.clone(), self.cancel_at);
        Arc::new(move |stream, text: &str| {
            live.lock().unwrap().push((stream, text.to_owned()));
            if cancel_at.is_some_and(|at| text.contains(at)) {
                cancel.cancel();
            }
        })
    }
}

fn here(root: &Path) -> Workspace {
    Workspace::folder(root.to_owned(), None)
}

pub fn fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}
