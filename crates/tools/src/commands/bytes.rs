//! Content that passes unchanged: the output of `view` into a pipe, and the input of `write` from one.

use lathe_policy::GateCall;
use lathe_protocol::{Effects, ToolKind};
use lathe_shell::OutputTarget;
use lathe_workspace::FileKind;
use serde_json::{Map, Value, json};

use super::{RunningCommand, agent_command, problem_text};
use crate::problem::{FileAccess, Problem};
use crate::tool::absolute;

/// Bytes read at once.
const PIECE: u64 = 64 << 10;

/// Tells whether a file is to be printed byte for byte instead of in words.
pub(super) fn is_raw(given: &Map<String, Value>, output: OutputTarget) -> bool {
    let flag = |name: &str| given.get(name).and_then(Value::as_bool);
    match (flag("raw"), flag("show_line_numbers")) {
        (Some(raw), _) => raw,
        (None, Some(numbers)) => !numbers,
        (None, None) => output == OutputTarget::Elsewhere,
    }
}

/// Bytes that are not text, as a content. Each becomes one character, so nothing is lost and little is added.
pub(super) fn encode_bytes(bytes: &[u8]) -> Value {
    json!({ "bytes": bytes.iter().map(|byte| char::from(*byte)).collect::<String>() })
}

/// Prints each file, or the lines of it that are asked for, unchanged.
pub(super) async fn print_raw(running: &mut RunningCommand, given: &Map<String, Value>) -> u8 {
    let number = |name: &str| given.get(name).and_then(Value::as_i64);
    let (offset, limit) = (number("offset").unwrap_or(1), number("limit"));
    if offset < 1 || limit.is_some_and(|limit| limit < 1) {
        return running.complain("offset and limit are counted from 1", super::code::USAGE).await;
    }
    let lines = (given.contains_key("offset") || limit.is_some()).then_some((offset, limit));
    let mut worst = 0;
    for path in agent_command::paths_of(given) {
        let code = match file(running, &path, lines).await {
            Ok(()) => 0,
            Err(RawFailure::Refused(code)) => code,
            Err(RawFailure::Problem(problem)) => {
                let words = problem_text(&problem);
                running.complain(&words, super::code::FAILED).await
            }
        };
        worst = worst.max(code);
    }
    worst
}

enum RawFailure {
    /// The refusal of the gate, with its exit code. It was printed already.
    Refused(u8),
    Problem(Problem),
}

async fn file(
    running: &mut RunningCommand,
    path: &str,
    lines: Option<(i64, Option<i64>)>,
) -> Result<(), RawFailure> {
    let path = absolute(&running.call.cwd, path);
    let effects = Effects::reading(path.display().to_string());
    let call = GateCall {
        tool: crate::view::ID,
        also: &[],
        kind: ToolKind::Read,
        kinds: &[],
        effects: &effects,
        arguments: &[],
    };
    running.decide(&call, None).await.map_err(RawFailure::Refused)?;
    running.results.tool = Some(crate::view::ID);
    crate::outputs::provide_outputs(&running.line.context, &effects.reads).await;
    let crate::files::hidden::ReadPlace { files, path: real, .. } =
        crate::files::hidden::ReadPlace::of(&running.line.context, &path, crate::view::ID, ToolKind::Read);
    let wrong = |error| RawFailure::Problem(Problem::from_workspace(error, &path, FileAccess::Reading));
    let stat = files.stat(&real).await.map_err(wrong)?;
    match stat.kind {
        FileKind::File => {}
        FileKind::Directory => {
            let call_gate = running.line.context.call_gate.clone();
            let hides = |name: &std::ffi::OsStr| {
                call_gate.hides_path(crate::view::ID, ToolKind::Read, &path.join(name))
            };
            let entries = files.list(&real).await.map_err(wrong)?;
            for entry in entries.into_iter().filter(|entry| !hides(&entry.name)) {
                running.write_out(format!("{}\n", entry.name.to_string_lossy())).await;
            }
            return Ok(());
        }
        FileKind::Special => return Err(RawFailure::Problem(Problem::special(&path, FileAccess::Reading))),
    }
    let mut window = lines.map(|(offset, limit)| LineFilter::new(offset, limit));
    let mut at = 0;
    loop {
        let piece = files.read(&real, Some(at..at + PIECE)).await.map_err(wrong)?;
        at += piece.len() as u64;
        let ended = (piece.len() as u64) < PIECE;
        let (piece, full) = match &mut window {
            Some(window) => window.of(piece),
            None => (piece, false),
        };
        if !piece.is_empty() && running.io.out(piece).await.is_err() {
            return Ok(());
        }
        if ended || full {
            return Ok(());
        }
    }
}

/// The lines that are asked for, counted while the bytes pass.
struct LineFilter {
    skip: u64,
    take: u64,
}

impl LineFilter {
    fn new(offset: i64, limit: Option<i64>) -> Self {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Self { skip: count(offset - 1), take: limit.map_or(u64::MAX, count) }
    }

    /// The wanted part of a piece. The flag is true if no more is wanted.
    fn of(&mut self, piece: Vec<u8>) -> (Vec<u8>, bool) {
        let mut wanted = Vec::new();
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            let whole = line.ends_with(b"\n");
            if self.skip > 0 {
                self.skip -= u64::from(whole);
            } else if self.take > 0 {
                wanted.extend_from_slice(line);
                self.take -= u64::from(whole);
            }
        }
        (wanted, self.take == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_across_pieces() {
        for size in 1..12 {
            let mut window = LineFilter::new(2, Some(2));
            let mut all = Vec::new();
            for piece in b"one\ntwo\nthree\nfour\n".chunks(size) {
                let (wanted, full) = window.of(piece.to_vec());
                all.extend(wanted);
                if full {
                    break;
                }
            }
            assert_eq!(all, b"two\nthree\n", "{size}");
        }
    }
}
