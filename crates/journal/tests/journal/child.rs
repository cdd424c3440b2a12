//! A second process: this test binary again, told by the environment what to be.

use std::env;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use lathe_blobs::Blobs;
use lathe_journal::{Journal, SessionReader};
use lathe_protocol::{Seq, SessionId};

use crate::make::{at, note};

const ROLE: &str = "LATHE_TEST_CHILD_ROLE";
const HOME: &str = "LATHE_TEST_CHILD_HOME";

/// The running child and what it says. It is killed when this is dropped.
pub struct Other {
    pub child: Child,
    pub says: Lines<BufReader<ChildStdout>>,
}

impl Other {
    pub fn start(role: &str, home: &Path) -> Self {
        Self::start_through(&[], role, home)
    }

    /// `wrapper` is a program with arguments that runs the child.
    pub fn start_through(wrapper: &[&str], role: &str, home: &Path) -> Self {
        let exe = env::current_exe().unwrap();
        let mut line: Vec<&str> = wrapper.to_vec();
        line.push(exe.to_str().unwrap());
        line.extend(["--exact", "child::play_a_role", "--nocapture"]);
        let mut child = Command::new(line[0])
            .args(&line[1..])
            .env(ROLE, role)
            .env(HOME, home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, says }
    }

    /// The next thing said after `word`, passing over what the test harness prints. None at the end.
    pub fn next(&mut self, word: &str) -> Option<String> {
        self.says
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix(word).map(|rest| rest.trim().to_owned()))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn say(word: &str, what: impl std::fmt::Display) {
    let line = format!("\n{word} {what}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// Not a test: the body of the second process. Without a role it does nothing.
#[test]
fn play_a_role() {
    let Ok(role) = env::var(ROLE) else { return };
    let home = env::var(HOME).unwrap();
    let home = Path::new(&home);
    let (sessions, id) = (home.join("sessions"), SessionId::new("s"));
    let blobs = Blobs::open(home.join("blobs")).unwrap();
    match role.as_str() {
        "hold" => {
            let _journal = Journal::open(&sessions, &id, blobs).unwrap();
            say("held", std::process::id());
            std::thread::sleep(Duration::from_secs(60));
        }
        "append" => append(Journal::open(&sessions, &id, blobs).unwrap()),
        "tail" => tail(&SessionReader::open(&sessions, &id, blobs).unwrap()),
        "full disk" => crate::full_disk::on_a_small_disk(home),
        other => panic!("no role {other}"),
    }
}

/// Appends without end, and prints the number of each acknowledged event. Sizes vary; blobs and checkpoints are
/// included.
fn append(mut journal: Journal) {
    let mut syncer = journal.syncer().unwrap();
    for n in journal.last().0 + 1.. {
        let text = format!("{n} {}", "x".repeat((n as usize * 7919) % 5000));
        let text = if n % 97 == 0 { text.repeat(40) } else { text };
        let event = journal.append(at(0), note(text)).unwrap();
        say("ack", event.seq);
        if n % 50 == 0 {
            syncer.sync().unwrap();
            syncer.checkpoint_if_large().unwrap();
        }
        if n % 70 == 0 {
            journal.save_snapshot(event.seq, n.to_string().as_bytes()).unwrap();
        }
    }
}

/// Follows the session by its data version until event 100 was seen.
fn tail(reader: &SessionReader) {
    let (mut cursor, mut version) = (Seq(0), -1);
    let end = Instant::now() + Duration::from_secs(60);
    say("ready", "");
    while cursor < Seq(100) && Instant::now() < end {
        let now = reader.data_version().unwrap();
        if now == version {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        }
        version = now;
        for event in reader.after(cursor, 1000).unwrap() {
            assert_eq!(event.seq, cursor.next());
            cursor = event.seq;
        }
        say("seen", cursor);
    }
}
