//! Content that passes as it is: what `view` puts into a pipe, what `write` takes from one.

use lathe_policy::Call;
use lathe_protocol::{Effects, Kind};
use lathe_shell::Output;
use lathe_workspace::FileKind;
use serde_json::{Map, Value, json};

use super::{Running, table, words};
use crate::problem::{Doing, Problem};
use crate::tool::absolute;

/// Bytes read at once.
const PIECE: u64 = 64 << 10;

/// Whether a file is to be given byte for byte instead of in words.
pub(super) fn wanted(given: &Map<String, Value>, output: Output) -> bool {
    let flag = |name: &str| given.get(name).and_then(Value::as_bool);
    match (flag("raw"), flag("show_line_numbers")) {
        (Some(raw), _) => raw,
        (None, Some(numbers)) => !numbers,
        (None, None) => output == Output::Elsewhere,
    }
}

/// Bytes that are no text, as a content. Each is one character, so nothing is lost and little is added.
pub(super) fn encoded(bytes: &[u8]) -> Value {
    json!({ "bytes": bytes.iter().map(|byte| char::from(*byte)).collect::<String>() })
}

/// Gives each file, or the lines of it that are asked for, as it is.
pub(super) async fn view(running: &mut Running, given: &Map<String, Value>) -> u8 {
    let number = |name: &str| given.get(name).and_then(Value::as_i64);
    let (offset, limit) = (number("offset").unwrap_or(1), number("limit"));
    if offset < 1 || limit.is_some_and(|limit| limit < 1) {
        return running.complain("offset and limit are counted from 1", super::code::USAGE).await;
    }
    let lines = (given.contains_key("offset") || limit.is_some()).then_some((offset, limit));
    let mut worst = 0;
    for path in table::paths_of(given) {
        let code = match file(running, &path, lines).await {
            Ok(()) => 0,
            Err(Failed::Refused(code)) => code,
            Err(Failed::Problem(problem)) => {
                let words = words(&problem);
                running.complain(&words, super::code::FAILED).await
            }
        };
        worst = worst.max(code);
    }
    worst
}

enum Failed {
    /// The gate's no, with its exit code; it was said already.
    Refused(u8),
    Problem(Problem),
}

async fn file(running: &mut Running, path: &str, lines: Option<(i64, Option<i64>)>) -> Result<(), Failed> {
    let path = absolute(&running.call.cwd, path);
    let effects = Effects::reading(path.display().to_string());
    let call = Call {
        tool: crate::view::ID,
        also: &[],
        kind: Kind::Read,
        kinds: &[],
        effects: &effects,
        arguments: &[],
    };
    running.decide(&call, None).await.map_err(Failed::Refused)?;
    running.left.tool = Some(crate::view::ID);
    crate::outputs::provide(&running.line.context, &effects.reads).await;
    let crate::hidden::ReadPlace { files, path: real, .. } =
        crate::hidden::ReadPlace::of(&running.line.context, &path, crate::view::ID, Kind::Read);
    let wrong = |error| Failed::Problem(Problem::from_workspace(error, &path, Doing::Reading));
    let stat = files.stat(&real).await.map_err(wrong)?;
    match stat.kind {
        FileKind::File => {}
        FileKind::Directory => {
            let judge = running.line.context.judge.clone();
            let hides = |name: &std::ffi::OsStr| judge.hides(crate::view::ID, Kind::Read, &path.join(name));
            let entries = files.list(&real).await.map_err(wrong)?;
            for entry in entries.into_iter().filter(|entry| !hides(&entry.name)) {
                running.say(format!("{}\n", entry.name.to_string_lossy())).await;
            }
            return Ok(());
        }
        FileKind::Special => return Err(Failed::Problem(Problem::special(&path, Doing::Reading))),
    }
    let mut window = lines.map(|(offset, limit)| Window::new(offset, limit));
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

/// The lines that are asked for, counted as the bytes go by.
struct Window {
    skip: u64,
    take: u64,
}

impl Window {
    fn new(offset: i64, limit: Option<i64>) -> Self {
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        Self { skip: count(offset - 1), take: limit.map_or(u64::MAX, count) }
    }

    /// What of a piece is wanted, and whether that was all.
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
            let mut window = Window::new(2, Some(2));
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
