//! Splits the bytes of an answer into the frames of a wire: server-sent events, or lines of JSON.
//!
//! Written here rather than taken from `eventsource-stream`, for three reasons that tests check: an event that ends
//! in a bare CR is emitted at once and not at the next byte; a line without an end cannot fill the memory; and the
//! same code frames Ollama's lines. Cuts may fall anywhere, even inside a line end or a UTF-8 character.

/// The maximum number of bytes of one event or line.
const FRAME_LIMIT: usize = 16 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The `event` field. Empty if there is none.
    pub(crate) event: String,
    pub(crate) data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Events,
    Lines,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FrameTooLarge;

pub(crate) struct Framer {
    framing: Framing,
    line: Vec<u8>,
    /// True if the last line ended in CR: an LF that follows belongs to it.
    after_cr: bool,
    event: String,
    data: String,
    has_data: bool,
    first_line: bool,
}

impl Framer {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            after_cr: false,
            event: String::new(),
            data: String::new(),
            has_data: false,
            first_line: true,
        }
    }

    /// Adds bytes; complete frames go to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<Frame>) -> Result<(), FrameTooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes.first() == Some(&b'\n') {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                break;
            };
            let (line, rest) = bytes.split_at(end);
            self.after_cr = rest.first() == Some(&b'\r');
            bytes = rest.get(1..).unwrap_or_default();
            if self.line.is_empty() {
                self.take_line(&String::from_utf8_lossy(line), out);
            } else {
                self.line.extend_from_slice(line);
                let whole = std::mem::take(&mut self.line);
                self.take_line(&String::from_utf8_lossy(&whole), out);
            }
        }
        if self.line.len() + self.data.len() > FRAME_LIMIT { Err(FrameTooLarge) } else { Ok(()) }
    }

    /// The remainder at the end of the stream: a last line without its end. Half an event is dropped.
    pub(crate) fn finish(mut self) -> Option<Frame> {
        match self.framing {
            Framing::Events => None,
            Framing::Lines => {
                let mut out = Vec::new();
                let line = std::mem::take(&mut self.line);
                self.take_line(&String::from_utf8_lossy(&line), &mut out);
                out.pop()
            }
        }
    }

    fn take_line(&mut self, line: &str, out: &mut Vec<Frame>) {
        let line = if std::mem::take(&mut self.first_line) {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        } else {
            line
        };
        match self.framing {
            Framing::Lines => {
                if !line.trim().is_empty() {
                    out.push(Frame { event: String::new(), data: line.to_owned() });
                }
            }
            Framing::Events => self.take_field(line, out),
        }
    }

    fn take_field(&mut self, line: &str, out: &mut Vec<Frame>) {
        if line.is_empty() {
            let (event, data) = (std::mem::take(&mut self.event), std::mem::take(&mut self.data));
            if std::mem::take(&mut self.has_data) {
                out.push(Frame { event, data });
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event),
            // A comment, `id`, `retry`, or something newer.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(framing: Framing, bytes: &[u8], step: usize) -> Vec<(String, String)> {
        let mut framer = Framer::new(framing);
        let mut out = Vec::new();
        for piece in bytes.chunks(step) {
            framer.push(piece, &mut out).unwrap();
        }
        out.extend(framer.finish());
        out.into_iter().map(|frame| (frame.event, frame.data)).collect()
    }

    #[test]
    fn line_ends_comments_and_data_of_many_lines_mean_the_same_however_they_are_cut() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!(
                ": hello{end}{end}event: a{end}data: {{\"x\":{end}data: \"é\"}}{end}id: 7{end}{end}data:y{end}{end}data{end}{end}"
            );
            for step in 1..text.len() {
                assert_eq!(
                    framed(Framing::Events, text.as_bytes(), step),
                    [
                        ("a".to_owned(), "{\"x\":\n\"é\"}".to_owned()),
                        (String::new(), "y".to_owned()),
                        (String::new(), String::new())
                    ],
                    "{end:?} {step}"
                );
            }
        }
    }

    #[test]
    fn half_an_event_at_the_end_is_nothing_but_half_a_line_is_a_line() {
        assert_eq!(framed(Framing::Events, b"data: x\n", 3), []);
        let lines = framed(Framing::Lines, b"{\"a\":1}\n\r\n{\"b\":2}", 2);
        assert_eq!(
            lines.iter().map(|(_, data)| data.as_str()).collect::<Vec<_>>(),
            ["{\"a\":1}", "{\"b\":2}"]
        );
    }

    #[test]
    fn an_event_that_ends_in_bare_cr_is_given_out_at_once() {
        let mut out = Vec::new();
        Framer::new(Framing::Events).push(b"data: [DONE]\r\r", &mut out).unwrap();
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut framer = Framer::new(Framing::Events);
        let piece = vec![b'x'; 1 << 20];
        let mut pushed = (0..20).map(|_| framer.push(&piece, &mut Vec::new()));
        assert!(pushed.any(|result| result == Err(FrameTooLarge)));
    }
}
