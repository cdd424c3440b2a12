//! The bash process and the statements that it is given.
//!
//! Every command of a statement is written `\builtin name`: neither an alias nor a function with that name can
//! replace it. Redirections are written `>|`, which `set -C` does not refuse.

use std::ffi::{OsStr, c_int};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::command_folder::CommandFolder;
use crate::private_folder::PrivateFolder;
use crate::stop::SIGNAL;
use crate::system::{PollFd, detach, wait};
use crate::tree::program;

/// Longer quoted text is passed in a file: bash reads its script byte by byte, and all statements of a line must fit
/// into one atomic write of 4096 bytes.
const LONG_TEXT: usize = 2048;

/// Variables that bash makes itself, or that describe the old one.
const NOT_KEPT: &str = "BASH*|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|LINENO|OLDPWD|PIPESTATUS|PPID|\
    PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_|__ax*";

/// Variables that make bash run a file when it starts, take options, or interpret words differently from the gate:
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

/// Removes the local variables with which functions hide a global one. The global one is marked first (the trace
/// attribute has no effect on variables), and inside another function `unset` uncovers the next one.
const UNCOVER: &str = r#"\builtin declare -gt -- "$__ax_name"
while [[ ${!__ax_name@a} != *t* ]]; do \builtin unset -v -- "$__ax_name" && [[ -v $__ax_name ]] || \builtin break; done
if [[ ${!__ax_name@a} == *t* ]]; then \builtin declare -g +t -- "$__ax_name"; \builtin declare -p -- "$__ax_name"; fi"#;

pub struct Bash {
    pub pid: c_int,
    /// The token of its first answer. None once that came.
    pub starting: Option<String>,
    pub restored: bool,
    /// The program that it runs, as long as no line has replaced it.
    program: Option<(u64, u64)>,
    script: File,
}

/// The parts of a line's statements.
pub struct LineScript<'a> {
    pub text: &'a [u8],
    pub token: &'a str,
    /// The value of `$?` at the beginning of the line.
    pub code: i32,
    pub outputs: [String; 2],
    pub state_slot: usize,
    /// The folder of the agent commands, if there are any.
    pub session: Option<&'a CommandFolder>,
    /// The real folder that bash is in.
    pub cwd: &'a Path,
}

impl Bash {
    /// Starts bash in `cwd`, with our environment or with the state of its predecessor. The functions in `rc` come
    /// first, so functions of the same name that a line has defined override them.
    pub fn start(
        folder: &mut PrivateFolder,
        shell: &OsStr,
        cwd: &Path,
        rc: Option<&Path>,
        state: Option<&[u8]>,
    ) -> io::Result<Self> {
        let token = folder.token()?;
        let mut command = Command::new(shell);
        // The script is the FIFO with that name, so `$0` and all messages read `bash`.
        command.args(["--norc", "--noprofile", "bash"]).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        detach(&mut command);
        let mut text = Vec::new();
        // In braces, so that `set -x` shows nothing of it.
        let trap = [b"{ \\builtin . ", folder.quoted(UNWIND).as_slice(), b"; } 2>/dev/null"].concat();
        let number = SIGNAL.to_string();
        // All on one line, since messages include a line number counted from here. And by `eval`, since messages from
        // within functions begin with the name of their file.
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

    /// Records that it has answered for the first time.
    pub fn has_started(&mut self) {
        self.starting = None;
        self.program = program(self.pid);
    }

    /// Returns false if a line has replaced bash by another program: `exec make`.
    pub fn is_itself(&self) -> bool {
        self.program == program(self.pid)
    }

    /// Tells whether bash has read all of its script. If its line has not answered, bash reads without running
    /// anything: `set -n`.
    pub fn has_read_all(&self) -> bool {
        let mut unread = [PollFd::reader(self.script.as_raw_fd())];
        wait(&mut unread, Some(Duration::ZERO)).is_ok() && !unread[0].is_ready()
    }

    /// Writes a line: its text, the answer, and after the answer the state.
    pub fn feed(&mut self, folder: &PrivateFolder, line: &LineScript<'_>) -> io::Result<()> {
        let mut text = Vec::new();
        // After `cd link` bash resolves `..` against the name of the link. Lines are judged for the real folder, so
        // each begins there.
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
        let paths = line.session.map(CommandFolder::without_path).filter(|_| mentions_path(line.text));
        let jobs = line.session.map(CommandFolder::jobs).filter(|_| runs_jobs(line.text));
        let functions: Vec<_> = paths.into_iter().chain(jobs).collect();
        if !functions.is_empty() {
            statement(&mut text, &[b"__ax_made=()"]);
        }
        for functions in &functions {
            statement(&mut text, &[b"\\builtin . ", &quote(functions.as_os_str().as_bytes())]);
        }
        // The redirection only resets the line number, from which messages then count. An assignment as a command
        // would not do: bash restores the number afterwards.
        let first: &[u8] = b" <&$((LINENO=0))";
        match line.code {
            0 => statement(&mut text, &[b"{ \\builtin :; }", first]),
            // Neither `!` nor the left side of `&&` triggers `set -e` or an ERR trap.
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

/// Writes the statements by which bash gives up its line: it saves its state and exits. Plain variables are a part of
/// that state, since bash itself did not fail.
///
/// If it `may_live`, is in no function and would not exit on a failure (`set -e`), it only breaks out of the loop
/// around the line. After a `break` bash skips every command up to the end of its loop, including those that follow
/// here.
pub fn unwind(folder: &PrivateFolder, state_slot: usize, token: &str, may_live: bool) -> io::Result<()> {
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

/// Removes the statements. Without a stop the signal has no effect.
pub fn forget_unwind(folder: &PrivateFolder) {
    folder.delete(UNWIND);
    folder.delete(SAVE);
}

fn save(text: &mut Vec<u8>, folder: &PrivateFolder, slot: usize, token: &str, variables: &[u8]) {
    let first = b"{ \\builtin declare -f; \\builtin umask -p; ";
    let last = [b"\\builtin export -p; \\builtin printf '\\n#%s\\n' ", token.as_bytes()].concat();
    let state = folder.quoted_state(slot);
    statement(text, &[first, variables, &last, b"; } 2>/dev/null >|", &state]);
}

/// Tells whether a line may change PATH.
fn mentions_path(line: &[u8]) -> bool {
    line.windows(4).any(|word| word == b"PATH")
}

/// Tells whether a line runs the agent's `jobs` anywhere: bash's own has an option or a job as its argument (`jobs
/// -rp`, `jobs %1`).
fn runs_jobs(line: &[u8]) -> bool {
    let mut places = line.windows(4).enumerate().filter(|(_, word)| word == b"jobs").map(|(at, _)| at);
    places.any(|at| {
        let after = &line[at + 4..];
        let ends = after.first().is_none_or(|byte| b" \t\n;|&()<>`\"".contains(byte));
        let mut words = after.iter().skip_while(|byte| matches!(byte, b' ' | b'\t'));
        let is_bashs = match (words.next(), words.next()) {
            (Some(b'%'), _) => true,
            // `-h` and `--help` belong to the agent's.
            (Some(b'-'), Some(letter)) => letter.is_ascii_lowercase() && *letter != b'h',
            _ => false,
        };
        ends && !is_bashs && may_begin_a_command(&line[..at])
    })
}

/// Tells whether a word after this text may be the name of a command: `max_jobs`, or a comment about jobs, is not.
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

fn answer(text: &mut Vec<u8>, folder: &PrivateFolder, token: &str) {
    put_answer(text, folder, token, b"\"$?\"");
    text.push(b'\n');
}

/// The answer in place of a code when a line has left the loop around it.
pub const BROKE_OUT: &str = "-";

fn put_answer(text: &mut Vec<u8>, folder: &PrivateFolder, token: &str, code: &[u8]) {
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
            assert!(runs_jobs(line.as_bytes()), "{line}");
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
            assert!(!runs_jobs(line.as_bytes()), "{line}");
        }
    }
}
