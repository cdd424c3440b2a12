//! Runs allowed lines, and checks that no program runs that was not listed.
//!
//! They run sealed: in a folder that is the whole file system of the scripts, with copies of bash and its libraries
//! in it and nothing else, and without a network where the machine allows that. No other program exists there: bash
//! asks a function for each name it does not find, and that function records the name and succeeds or fails by
//! chance, so that loops end.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lathe_policy::Rulebook;
use lathe_protocol::{Actor, Mode, Verdict};
use lathe_testkit::size;

use crate::corpus::{gate, rules};
use crate::generated::{Dice, allowable};

/// Scripts run by one bash of the seal.
const BATCH: usize = 500;

/// Runs inside. Names with a slash are asked for too: a stand-in lies where they would be found.
const DRIVER: &str = r#"
export PATH=/nothing x=value BASH_ENV=/environment
command_not_found_handle() { builtin printf '%s\n' "${1##*/}" >> "$LOG"; [[ $RANDOM -gt 12000 ]]; }
export -f command_not_found_handle
for script in /scripts$1/*; do
  export LOG=/log$1/${script##*/}
  (ulimit -t 1; cd /empty && exec /seal/bash --norc --noprofile "$script") </dev/null >/dev/null 2>&1
done
exit 0
"#;

struct Seal {
    root: tempfile::TempDir,
    /// Words before a command inside.
    enter: Vec<String>,
    batches: AtomicUsize,
}

impl Seal {
    fn make() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["seal", "empty", "dev", "bin", "usr/bin"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        let put = |from: &Path, to: PathBuf| {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        };
        put(Path::new("/bin/bash"), root.path().join("seal/bash"));
        let libraries = Command::new("ldd").arg("/bin/bash").output().unwrap();
        for word in String::from_utf8(libraries.stdout).unwrap().split_whitespace() {
            if word.starts_with('/') {
                put(Path::new(word), root.path().join(word.trim_start_matches('/')));
            }
        }
        fs::write(root.path().join("dev/null"), "").unwrap();
        fs::write(root.path().join("driver"), DRIVER).unwrap();
        // Bash's own echo always succeeds, and a loop over it would never end.
        fs::write(root.path().join("environment"), "enable -n echo\n").unwrap();
        for name in ["bin/ls", "bin/evil", "usr/bin/ls", "empty/ls", "empty/x"] {
            let path = root.path().join(name);
            fs::write(&path, "#!/seal/bash\nbuiltin printf '%s\\n' \"with a slash: $0\" >> \"$LOG\"\n")
                .unwrap();
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        let inside = root.path().display().to_string();
        let ways = [
            vec!["unshare", "-rn", "chroot", &inside],
            vec!["unshare", "-r", "chroot", &inside],
            vec!["chroot", &inside],
        ];
        let works = |way: &&Vec<&str>| {
            let tried = Command::new(way[0]).args(&way[1..]).args(["/seal/bash", "-c", ":"]).output();
            tried.is_ok_and(|tried| tried.status.success())
        };
        let enter = ways.iter().find(works).expect("neither `unshare` nor `chroot` can be used");
        Self {
            enter: enter.iter().map(|word| (*word).to_owned()).collect(),
            root,
            batches: Default::default(),
        }
    }

    /// Runs scripts and gives, for each, the programs it asked for.
    fn run(&self, scripts: &[String]) -> Vec<BTreeSet<String>> {
        // Folders of its own: what an earlier batch left in the background may still write.
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        let place = |name: &str| self.root.path().join(format!("{name}{batch}"));
        for folder in ["scripts", "log"] {
            fs::create_dir(place(folder)).unwrap();
        }
        for (number, script) in scripts.iter().enumerate() {
            fs::write(place("scripts").join(number.to_string()), script).unwrap();
        }
        let ran = Command::new(&self.enter[0])
            .args(&self.enter[1..])
            .args(["/seal/bash", "--norc", "--noprofile", "/driver", &batch.to_string()])
            .env_clear()
            // The seal is entered by programs of this machine.
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let asked = |number: usize| {
            let log = fs::read_to_string(place("log").join(number.to_string())).unwrap_or_default();
            log.lines().map(str::to_owned).collect()
        };
        (0..scripts.len()).map(asked).collect()
    }
}

/// The next scripts from this number on that are allowed, with the programs that were listed for each.
fn allowed(rules: &Rulebook, number: &mut u64, step: u64) -> Vec<(String, BTreeSet<String>)> {
    let (gate, mut found) = (gate(), Vec::new());
    while found.len() < BATCH {
        let script = allowable(&mut Dice(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 3));
        *number += step;
        let decided = gate.decide_line(rules, Actor::Model, Mode::Default, &script);
        // A failing redirection makes a loop that waits for its success endless: no file exists in the seal.
        let endless = script.contains("until") && script.contains('<');
        if decided.decision.verdict != Verdict::Allow || endless {
            continue;
        }
        let listed = decided.commands.iter().filter_map(|each| each.words.first().cloned()).collect();
        found.push((script, listed));
    }
    found
}

#[test]
fn nothing_runs_that_was_not_listed_while_it_was_allowed() {
    let (rules, seal) = (rules(), Seal::make());
    let most = size(1_000, 100_000);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let (done, programs, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = |first: usize| {
        let mut number = first as u64;
        while done.fetch_add(BATCH, Ordering::Relaxed) < most {
            let (scripts, listed): (Vec<_>, Vec<_>) =
                allowed(&rules, &mut number, threads as u64).into_iter().unzip();
            for ((script, listed), ran) in scripts.iter().zip(&listed).zip(seal.run(&scripts)) {
                if !ran.is_subset(listed) {
                    wrong.lock().unwrap().push(format!("{script:?} ran {ran:?}, listed were {listed:?}"));
                }
                programs.fetch_add(ran.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for first in 0..threads {
            let work = &work;
            scope.spawn(move || work(first));
        }
    });
    assert_eq!(wrong.into_inner().unwrap(), Vec::<String>::new());
    // What runs nothing proves nothing.
    let programs = programs.into_inner();
    assert!(programs > most, "{programs} programs in {most} scripts");
    println!("{most} scripts, {programs} programs");
}

#[test]
fn the_seal_sees_what_runs() {
    let seal = Seal::make();
    let scripts =
        ["ls | cat", "evil $(git x)", "for i in a b; do echo $(rg x); done", "/bin/ls", "./x", "echo no"];
    let ran = seal.run(&scripts.map(str::to_owned));
    let expected: [&[&str]; 6] = [
        &["cat", "ls"],
        &["evil", "git"],
        &["echo", "rg"],
        &["with a slash: /bin/ls"],
        &["with a slash: ./x"],
        &["echo"],
    ];
    let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>());
    assert_eq!(ran, expected);
}
