//! The input that a user types: tasks at the prompt, and answers to the model's questions.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lathe_protocol::Question;
use lathe_views::{chosen_answer, question_text};
use tokio::sync::mpsc;

use crate::terminal;

/// Lines of standard input, read by a thread of their own: reading blocks, and a run must not.
///
/// A line belongs to the moment at which its first byte came. A line that was begun before [`TypedLines::discard`]
/// answers nothing, however late its end comes: it was typed for a question that is gone.
pub(crate) struct TypedLines {
    lines: mpsc::Receiver<TypedLine>,
    age: Arc<AtomicU64>,
}

struct TypedLine {
    age: u64,
    line: String,
}

impl TypedLines {
    pub(crate) fn read() -> Self {
        let (sender, lines) = mpsc::channel(16);
        let age = Arc::new(AtomicU64::new(0));
        let now = Arc::clone(&age);
        // The thread ends with the process; it holds nothing that needs to be closed.
        std::thread::spawn(move || {
            let (mut input, mut begun) = (std::io::stdin().lock(), None);
            loop {
                let piece = match input.fill_buf() {
                    Ok(piece) => piece.to_vec(),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(_) => Vec::new(),
                };
                input.consume(piece.len());
                if piece.is_empty() {
                    let rest = begun.take().and_then(typed_line);
                    let _ = rest.map(|rest| sender.blocking_send(rest));
                    return;
                }
                let came = now.load(Ordering::SeqCst);
                for part in piece.split_inclusive(|byte| *byte == b'\n') {
                    let (_, bytes) = begun.get_or_insert_with(|| (came, Vec::new()));
                    bytes.extend_from_slice(part);
                    if part.ends_with(b"\n") {
                        let Some(line) = begun.take().and_then(typed_line) else { return };
                        if sender.blocking_send(line).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Self { lines, age }
    }

    /// Discards the lines typed so far, and a line that has no end yet.
    pub(crate) fn discard(&mut self) {
        self.take_typed();
    }

    /// Takes the lines that were typed so far and not read. A line without an end is discarded.
    pub(crate) fn take_typed(&mut self) -> Vec<String> {
        // A terminal keeps the line that is being typed to itself.
        lathe_host::discard_typed_input();
        self.age.fetch_add(1, Ordering::SeqCst);
        std::iter::from_fn(|| self.lines.try_recv().ok()).map(|typed| typed.line).collect()
    }

    pub(crate) async fn next(&mut self) -> Option<String> {
        loop {
            let typed = self.lines.recv().await?;
            if typed.age == self.age.load(Ordering::SeqCst) {
                return Some(typed.line);
            }
        }
    }
}

/// A line as it was typed. None for bytes that are not text: they end the input.
fn typed_line((age, mut bytes): (u64, Vec<u8>)) -> Option<TypedLine> {
    for end in [b'\n', b'\r'] {
        if bytes.last() == Some(&end) {
            bytes.pop();
        }
    }
    String::from_utf8(bytes).ok().map(|line| TypedLine { age, line })
}

/// Asks the questions one after the other. None if the input ends before the last is answered.
pub(crate) async fn ask_questions(questions: &[Question], lines: &mut TypedLines) -> Option<Vec<String>> {
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        terminal::out(&format!("\n{}", question_text(question, terminal::language())));
        let line = lines.next().await?;
        answers.push(chosen_answer(question, line.trim()));
    }
    Some(answers)
}
