//! A stream gives the same answer however it is cut.

use lathe_protocol::Usage;
use lathe_testkit::{LineEnd, Options, Wire as Fake, recorded_answer, say};
use proptest::prelude::*;
use serde_json::json;

use crate::assembly::{Flow, assembly, framing};
use crate::form::Wire;
use crate::frames::Framer;
use crate::request::{Delta, ModelAnswer};

const WIRES: [(Wire, Fake); 5] = [
    (Wire::Chat, Fake::Chat),
    (Wire::Messages, Fake::Messages),
    (Wire::Responses, Fake::Responses),
    (Wire::Gemini, Fake::Gemini),
    (Wire::Ollama, Fake::Ollama),
];

/// The result of reading a stream: the answer, and the deltas shown meanwhile.
fn read(wire: Wire, pieces: &[&[u8]]) -> (ModelAnswer, String) {
    let (mut framer, mut assembling) = (Framer::new(framing(wire)), assembly(wire));
    let (mut frames, mut deltas) = (Vec::new(), Vec::new());
    let mut ended = false;
    for piece in pieces {
        framer.push(piece, &mut frames).unwrap();
        for frame in frames.drain(..) {
            assert!(!ended, "something came after the end");
            ended = assembling.take(&frame, &mut deltas).unwrap() == Flow::End;
        }
    }
    assert!(ended || assembling.is_ended());
    let shown = deltas.into_iter().map(|delta| match delta {
        Delta::Text(text) | Delta::Thinking(text) => text,
        Delta::CallForming(name) => format!("[{name}]"),
        Delta::Retry { .. } | Delta::Lost(_) => String::new(),
    });
    (assembling.finish(0), shown.collect())
}

fn cut<'a>(bytes: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (bytes.len() + 1)).collect();
    places.push(bytes.len());
    places.sort_unstable();
    let mut from = 0;
    places
        .into_iter()
        .map(|to| {
            let piece = &bytes[from..to];
            from = to;
            piece
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cutting_of_any_stream_gives_the_same_answer(
        thought in "[a-zü世🙂\\n\\\\\"]{0,30}",
        text in "\\PC{1,60}",
        argument in "\\PC{0,60}",
        places in prop::collection::vec(any::<usize>(), 0..40),
        line_end in prop::sample::select(vec![LineEnd::Lf, LineEnd::CrLf, LineEnd::Cr]),
        comments in any::<bool>(),
        multiline in any::<bool>(),
    ) {
        let usage = Usage { input_tokens: 90, output_tokens: 9, cache_read_input_tokens: 40, ..Usage::default() };
        let said = say("").think(&thought).say(&text).call("c1", "bash", json!({ "command": argument, "n": [1, null] }));
        let said = said.usage(usage);
        for (wire, fake) in WIRES {
            let plain = recorded_answer(fake, &said, &Options::default());
            let expected = read(wire, &[&plain]);
            prop_assert!(lathe_protocol::calls_of(&expected.0.blocks).count() == 1);
            let options = Options { line_end, comments, multiline, ..Options::default() };
            let written = recorded_answer(fake, &said, &options);
            prop_assert_eq!(&read(wire, &cut(&written, &places)), &expected);
            let every: Vec<&[u8]> = written.chunks(1).collect();
            prop_assert_eq!(&read(wire, &every), &expected);
        }
    }
}
