//! The bash process and the statements it is given.
//!
//! Every command of a statement is written `\builtin name`: neither an alias nor a function of that name
//! can take its place. Redirections are written `>|`, which `set -C` does not refuse.

use std::ffi::{OsStr, c_int};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::folder::Folder;
use crate::session::Session;
use crate::stop::SIGNAL;
use crate::system::{PollFd, detach, wait};
use crate::tree::program;

/// Longer quoted text goes by file: bash reads its script byte by byte, and all statements of a line
/// must fit into one atomic write of 4096 bytes.
const LONG_TEXT: usize = 2048;

/// Variables that bash makes itself, or that say something about the old one.
const NOT_KEPT: &str = "BASH*|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|LINENO|OLDPWD|PIPESTATUS|PPID|\
    PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_|__ax*";

/// Variables by which bash would run a file when it starts, take options, or read words otherwise than they are judged:
/// with a `CDPATH`, `cd src` leads anywhere.
const STEERING: [&str; 9] = [
    "BASH_ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_COMPAT",
    "CDPATH",
    "EXECIGNORE",
    "GLOBIGNORE",
    "GLOBSORT",
    "POSIXLY_CORRECT",
];

/// Takes away what functions have put in front of a global variable. That one is marked first (the trace
/// attribute means nothing for variables), and from within another function `unset` uncovers the next one.
const UNCOVER: &str = r#"\builtin declare -gt -- "$__ax_name"
while [[ ${!__ax_name@a} != *t* ]]; do \builtin unset -v -- "$__ax_name" && [[ -v $__ax_name ]] || \builtin break; done
if [[ ${!__ax_name@a} == *t* ]]; then \builtin declare -g +t -- "$__ax_name"; \builtin declare -p -- "$__ax_name"; fi"#;

pub struct Bash {
    pub pid: c_int,
    /// What its first answer must carry; `None` once that came.
    pub starting: Option<String>,
    pub restored: bool,
    /// The program it runs, as long as no line has replaced it.
    program: Option<(u64, u64)>,
    script: File,
}

/// Everything a line's statements are made of.
pub struct LineScript<'a> {
    pub text: &'a [u8],
    pub token: &'a str,
    /// `$?` as the line is to find it.
    pub code: i32,
    pub outputs: [String; 2],
    pub state_slot: usize,
    /// The folder of the agent commands, if there are any.
    pub session: Option<&'a Session>,
    /// The real folder that bash is in.
    pub cwd: &'a Path,
}

impl Bash {
    /// Starts bash in `cwd`, with our environment or with the state of its predecessor. The functions in `rc`
    /// come first, so a line that has made its own of that name keeps them.
    pub fn start(
        folder: &mut Folder,
        shell: &OsStr,
        cwd: &Path,
        rc: Option<&Path>,
        state: Option<&[u8]>,
    ) -> io::Result<Self> {
        let token = folder.token()?;
        let mut command = Command::new(shell);
        // The script is the FIFO of that name, so `$0` and all messages read `bash`.
        command.args(["--norc", "--noprofile", "bash"]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        detach(&mut command);
        let mut text = Vec::new();
        // In braces, so that `set -x` shows nothing of it.
        let trap = [b"{ \\builtin . ", folder.quoted(UNWIND).as_slice(), b"; } 2>/dev/null"].concat();
        let number = SIGNAL.to_string();
        // All in one line, since messages tell the number of a line counted from here. And by `eval`, since messages
        // from within functions begin with the name of the file they came from.
        let rc = rc.map_or(b"\\builtin :".to_vec(), |rc| {
            let rc = quote(rc.as_os_str().as_bytes());
            let rest = b"; \\builtin eval \"$__ax\"; \\builtin unset -v __ax";
            [b"\\builtin read -rd '' __ax <", rc.as_slice(), rest].concat()
        });
        statement(&mut text, &[b"\\builtin trap ", &quote(&trap), b" ", number.as_bytes(), b"; ", &rc]);
        let cd = [b"\\builtin cd -- ", quote(cwd.as_os_str().as_bytes()).as_slice()].concat();
        if let Some(state) = state {
            command.env_clear();
            folder.write("restore", state)?;
            statement(&mut text, &[b"\\builtin . ", &folder.quoted("restore")]);
            statement(&mut text, &[&cd]);
            // The `cd` above has just overwritten it.
            let mut lines = state.split(|byte| *byte == b'\n');
            let old = lines.find(|line| line.starts_with(b"declare -x OLDPWD=") && line.len() < 1024);
            statement(&mut text, &[old.unwrap_or_default()]);
        } else {
            for variable in STEERING {
                command.env_remove(variable);
            }
            statement(&mut text, &[&cd, b"; \\builtin unset OLDPWD; \\builtin export OLDPWD"]);
            if let Some(file) = std::env::var_os("BASH_ENV").filter(|file| file.len() < 1024) {
                statement(&mut text, &[b"\\builtin export BASH_ENV=", &quote(file.as_bytes())]);
            }
        }
        answer(&mut text, folder, &token);
        let mut script = folder.new_script()?;
        script.write_all(&text)?;
        let pid = command.spawn()?.id() as c_int;
        Ok(Self { pid, starting: Some(token), restored: state.is_some(), program: None, script })
    }

    /// It has answered for the first time.
    pub fn has_started(&mut self) {
        self.starting = None;
        self.program = program(self.pid);
    }

    /// False when a line has put a program in its place: `exec make`.
    pub fn is_itself(&self) -> bool {
        self.program == program(self.pid)
    }

    /// It has read all of its script. With a line that has not answered it reads and does not run: `set -n`.
    pub fn has_read_all(&self) -> bool {
        let mut unread = [PollFd::reader(self.script.as_raw_fd())];
        wait(&mut unread, Some(Duration::ZERO)).is_ok() && !unread[0].is_ready()
    }

    /// Hands over a line: its text, the answer, and after the answer the state.
    pub fn feed(&mut self, folder: &Folder, line: &LineScript<'_>) -> io::Result<()> {
        let mut text = Vec::new();
        // After `cd link` bash takes `..` off the name of the link. Lines are judged for the real folder, so each begins there.
        let real = quote(line.cwd.as_os_str().as_bytes());
        let go = b"{ __ax=${OLDPWD-}; \\builtin cd -P . && OLDPWD=$__ax; \\builtin unset -v __ax; } || \\builtin :";
        match real.len() < LONG_TEXT / 2 {
            true => statement(&mut text, &[b"[[ $PWD == ", &real, b" ]] || ", go]),
            false => statement(&mut text, &[go]),
        }
        if let Some(session) = line.session {
            let bin = quote(session.commands().as_os_str().as_bytes());
            statement(&mut text, &[b"case :$PATH: in *:", &bin, b":*) ;; *) PATH=", &bin, b":$PATH ;; esac"]);
        }
        let paths = line.session.map(Session::without_path).filter(|_| speaks_of_path(line.text));
        let jobs = line.session.map(Session::jobs).filter(|_| speaks_of_jobs(line.text));
        let functions: Vec<_> = paths.into_iter().chain(jobs).collect();
        if !functions.is_empty() {
            statement(&mut text, &[b"__ax_made=()"]);
        }
        for functions in &functions {
            statement(&mut text, &[b"\\builtin . ", &quote(functions.as_os_str().as_bytes())]);
        }
        // The redirection changes nothing but the number of the next line, which messages then count from. An assignment
        // that is a command would not: bash takes that number back.
        let first: &[u8] = b" <&$((LINENO=0))";
        match line.code {
            0 => statement(&mut text, &[b"{ \\builtin :; }", first]),
            // Neither `!` nor the left side of `&&` sets off `set -e` or an ERR trap.
            1 => statement(&mut text, &[b"! { \\builtin :; }", first]),
            code => {
                folder.write("code", format!("\\builtin return {code}\n").as_bytes())?;
                let code = folder.quoted("code");
                statement(&mut text, &[b"{ \\builtin . ", &code, b"; }", first, b" && \\builtin :"]);
            }
        }
        let mut quoted = quote(line.text);
        if quoted.len() > LONG_TEXT {
            folder.write("text", line.text)?;
            quoted = [b"\"$(<", folder.quoted("text").as_slice(), b")\""].concat();
        }
        let [out, err] = line.outputs.each_ref().map(|name| folder.quoted(name));
        let run = [
            b"for _ in 1; do \\builtin eval ",
            quoted.as_slice(),
            b" </dev/null >|",
            &out,
            b" 2>|",
            &err,
            b"; ",
        ];
        text.extend(run.concat());
        // Only a line that came to its end answers here.
        put_answer(&mut text, folder, line.token, b"\"$?\"");
        statement(&mut text, &[b"; done"]);
        put_answer(&mut text, folder, line.token, BROKE_OUT.as_bytes());
        text.push(b'\n');
        if !functions.is_empty() {
            statement(
                &mut text,
                &[b"\\builtin unset -f -- \"${__ax_made[@]}\"; \\builtin unset -v __ax_made"],
            );
        }
        save(&mut text, folder, line.state_slot, line.token, b"");
        self.script.write_all(&text)
    }
}

/// The files that the trap of [`SIGNAL`] reads.
const UNWIND: &str = "unwind";
const SAVE: &str = "save";

/// Writes what bash does when it has to give up its line: it saves its state and exits. Plain variables are
/// a part of that state, since it was not bash that failed.
///
/// Or it only breaks out of the loop around the line, if it `may_live`, is in no function and would not
/// exit for a failure (`set -e`). After a `break` bash skips every command up to the end of its loop, also
/// those that follow here.
pub fn unwind(folder: &Folder, state_slot: usize, token: &str, may_live: bool) -> io::Result<()> {
    let letters = (b'A'..=b'Z').chain(b'a'..=b'z').chain([b'_']);
    let names: String = letters.map(|letter| format!("\"${{!{}@}}\" ", letter as char)).collect();
    let each = |what: &str| {
        format!("for __ax_name in {names}; do case $__ax_name in {NOT_KEPT}) ;; *) {what} ;; esac; done")
    };
    let variables = format!(
        "if \\builtin local >/dev/null 2>&1; then \\builtin shopt -u localvar_unset; __ax() {{ {}; }}; __ax; else {}; fi; ",
        each(UNCOVER),
        each("\\builtin declare -p -- \"$__ax_name\""),
    );
    let mut text = Vec::new();
    save(&mut text, folder, state_slot, token, variables.as_bytes());
    folder.write(SAVE, &text)?;
    text.clear();
    if may_live {
        let line: &[u8] = b"[[ $- == *e* ]] || \\builtin local >/dev/null 2>&1 || \\builtin break 99999";
        statement(&mut text, &[line]);
    }
    let trap = [b"\\builtin . ", folder.quoted(SAVE).as_slice()].concat();
    statement(&mut text, &[b"\\builtin trap ", &quote(&trap), b" EXIT; \\builtin exit"]);
    folder.write(UNWIND, &text)
}

/// Without a stop the signal means nothing.
pub fn forget_unwind(folder: &Folder) {
    folder.delete(UNWIND);
    folder.delete(SAVE);
}

fn save(text: &mut Vec<u8>, folder: &Folder, slot: usize, token: &str, variables: &[u8]) {
    let first = b"{ \\builtin declare -f; \\builtin umask -p; ";
    let last = [b"\\builtin export -p; \\builtin printf '\\n#%s\\n' ", token.as_bytes()].concat();
    let state = folder.quoted_state(slot);
    statement(text, &[first, variables, &last, b"; } 2>/dev/null >|", &state]);
}

/// Tells whether a line may give PATH another value.
fn speaks_of_path(line: &[u8]) -> bool {
    line.windows(4).any(|word| word == b"PATH")
}

/// Tells whether a line runs the agent's `jobs` anywhere: bash's own is given an option or a job (`jobs -rp`, `jobs %1`).
fn speaks_of_jobs(line: &[u8]) -> bool {
    let mut places = line.windows(4).enumerate().filter(|(_, word)| word == b"jobs").map(|(at, _)| at);
    places.any(|at| {
        let after = &line[at + 4..];
        let ends = after.first().is_none_or(|byte| b" \t\n;|&()<>`\"".contains(byte));
        let mut words = after.iter().skip_while(|byte| matches!(byte, b' ' | b'\t'));
        let is_bashs = match (words.next(), words.next()) {
            (Some(b'%'), _) => true,
            // `-h` and `--help` are the agent's.
            (Some(b'-'), Some(letter)) => letter.is_ascii_lowercase() && *letter != b'h',
            _ => false,
        };
        ends && !is_bashs && may_begin_a_command(&line[..at])
    })
}

/// Tells whether a word after this text may be the name of a command: `max_jobs` and a comment about jobs are none.
fn may_begin_a_command(before: &[u8]) -> bool {
    let text = before.trim_ascii_end();
    let is_apart = text.len() < before.len();
    match text.last() {
        None => true,
        Some(_) if before.ends_with(b"\n") => true,
        Some(byte) if b";|&(`!\\".contains(byte) => true,
        Some(b'{') => is_apart,
        Some(_) => {
            let word = text.rsplit(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
            let words: [&[u8]; 8] = [b"then", b"do", b"else", b"elif", b"if", b"while", b"until", b"time"];
            is_apart && words.contains(&word)
        }
    }
}

fn answer(text: &mut Vec<u8>, folder: &Folder, token: &str) {
    put_answer(text, folder, token, b"\"$?\"");
    text.push(b'\n');
}

/// The answer in the place of a code when a line has left the loop around it.
pub const BROKE_OUT: &str = "-";

fn put_answer(text: &mut Vec<u8>, folder: &Folder, token: &str, code: &[u8]) {
    let answers = folder.quoted("a");
    text.extend([b"\\builtin printf '%s %s\\n' ", token.as_bytes(), b" ", code, b" >|", &answers].concat());
}

fn statement(text: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| text.extend_from_slice(part));
    text.push(b'\n');
}

pub fn quote(text: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    if !text.is_empty() && text.iter().all(is_plain) {
        return text.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in text {
        match byte {
            b'\'' => quoted.extend_from_slice(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_with_an_option_is_bashs_own() {
        for line in [
            "jobs",
            "x | jobs",
            "jobs read 3",
            "jobs --help",
            "jobs -h",
            "jobs; echo -l",
            "jobs; jobs -p",
            "{ jobs; }",
            "x=$(jobs)",
            "if jobs; then :; fi",
        ] {
            assert!(speaks_of_jobs(line.as_bytes()), "{line}");
        }
        for line in [
            "job",
            "",
            "jobs -l",
            "echo $(jobs -rp | wc -l)",
            "jobs  %1",
            "jobs -l; jobs -p",
            "max_jobs=4; jobs -p",
            "# all jobs\njobs -p",
            "echo $jobs ${jobs}",
            "make -j $jobs",
        ] {
            assert!(!speaks_of_jobs(line.as_bytes()), "{line}");
        }
    }
}
