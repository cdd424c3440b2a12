//! Everything a provider can do wrong, as cases for the real binary: each must end in success, or in a clear error, within
//! its limit, and leave a conversation that a strict provider takes.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::lathe::Lathe;
use crate::options::{Chunking, LineEnd, Options};
use crate::repo::TempRepo;
use crate::script::{FakeAnswer, Fault, FaultPoint, Script, call, done, say};
use crate::server::FakeModel;
use crate::wires::Wire;

/// The limit of one case: less than the stalls here last, far more than a busy machine needs.
const LIMIT: Duration = Duration::from_secs(500);

/// The patience of the client in a case. Only cases about waiting are impatient: on a busy machine a good answer is late
/// too, and counts as one more fault.
#[derive(Debug, Clone, Copy)]
struct ClientPatience {
    retries: u32,
    /// The time without a byte.
    stall_seconds: u32,
    /// The time that a whole answer may take.
    answer_seconds: u32,
}

impl ClientPatience {
    /// For faults that are noticed at once.
    const LONG: Self = Self { retries: 3, stall_seconds: 300, answer_seconds: 300 };
    /// For a server that is silent, and answers when asked again.
    const FOR_SILENCE: Self = Self { retries: 20, stall_seconds: 1, ..Self::LONG };
    /// For a server that is silent every time.
    const FOR_LASTING_SILENCE: Self = Self { retries: 3, ..Self::FOR_SILENCE };
    /// For an answer that does not end.
    const FOR_ENDLESS: Self = Self { retries: 20, answer_seconds: 3, ..Self::LONG };

    fn settings(self) -> String {
        let Self { retries, stall_seconds, answer_seconds } = self;
        format!(
            "[model]\nmax_retries = {retries}\nstall_seconds = {stall_seconds}\nlongest_wait_seconds = 1\n\
             answer_seconds = {answer_seconds}\n"
        )
    }
}

#[derive(Debug, Clone)]
pub struct FaultCase {
    pub name: &'static str,
    script: Script,
    options: Options,
    target: Target,
    patience: ClientPatience,
    expected: Expected,
}

/// The expected result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Exit 0, and the call has run exactly this often.
    Success(usize),
    /// This exit code, these words in the result, and no call has run.
    Error(i32, &'static str),
}

/// The address that the program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Server,
    /// A port without a listener.
    Nobody,
    /// A name that is none.
    NoName,
    /// A server that speaks no TLS, by https.
    PlainAsTls,
}

/// The result of a case.
#[derive(Debug, Clone)]
pub struct FaultOutcome {
    pub code: i32,
    pub elapsed: Duration,
    pub requests: usize,
    /// The differences from what was expected.
    pub wrong: Vec<String>,
}

fn good_call() -> FakeAnswer {
    call("c1", "bash", json!({ "command": "echo x >> count" }))
}

fn case(name: &'static str, first: FakeAnswer, expected: Expected) -> FaultCase {
    FaultCase {
        name,
        script: Script::new().answer(first).answer(done("ok")),
        options: Options::default(),
        target: Target::Server,
        patience: ClientPatience::LONG,
        expected,
    }
}

/// It goes wrong so often, then the call comes through and runs once.
fn passing_fault(name: &'static str, times: usize, fault: Fault) -> FaultCase {
    case(name, good_call().fails(times, fault), Expected::Success(1))
}

fn lasting_fault(name: &'static str, fault: Fault, code: i32, words: &'static str) -> FaultCase {
    case(name, good_call().always_fails(fault), Expected::Error(code, words))
}

/// An odd answer first, then the good call.
fn odd_answer(name: &'static str, answer: FakeAnswer) -> FaultCase {
    let script = Script::new().answer(answer).answer(good_call()).answer(done("ok"));
    FaultCase { script, ..case(name, good_call(), Expected::Success(1)) }
}

fn unusual_writes(name: &'static str, options: Options) -> FaultCase {
    let first = say("Grüße, 世界 🙂").call("c1", "bash", json!({ "command": "echo x >> count # 世界" }));
    FaultCase { options, ..case(name, first, Expected::Success(1)) }
}

/// Every case on one wire.
pub fn fault_cases(wire: Wire) -> Vec<FaultCase> {
    let status = Fault::status;
    let base = Options::default;
    let mut cases = vec![
        passing_fault("429, Retry-After 1", 1, status(429, "slow down").header("retry-after", "1")),
        passing_fault("429, Retry-After 4, capped", 1, status(429, "slow down").header("retry-after", "4")),
        passing_fault("429, Retry-After as a date", 1, {
            status(429, "slow down").header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")
        }),
        passing_fault("429, retry-after-ms", 2, status(429, "slow down").header("retry-after-ms", "5")),
        passing_fault("429 without Retry-After", 1, status(429, "slow down")),
        passing_fault(
            "429, Retry-After 10^9, capped",
            1,
            status(429, "slow down").header("retry-after", "1000000000"),
        ),
        passing_fault("408", 1, status(408, "timeout")),
        passing_fault("409", 1, status(409, "conflict")),
        passing_fault("500 once", 1, status(500, "oops")),
        passing_fault("500 three times", 3, status(500, "oops")),
        passing_fault("502 with a web page", 1, {
            Fault::Status { code: 502, body: "<html>Bad Gateway</html>".to_owned(), headers: Vec::new() }
        }),
        passing_fault("503", 1, status(503, "unavailable")),
        passing_fault("504", 1, status(504, "gateway timeout")),
        passing_fault("529", 1, status(529, "overloaded")),
        passing_fault("x-should-retry on 400", 1, status(400, "odd").header("x-should-retry", "true")),
        lasting_fault("500 for ever", status(500, "oops"), 3, "answered 500: oops"),
        lasting_fault("429 for ever", status(429, "slow down"), 3, "answered 429"),
        lasting_fault(
            "x-should-retry: false",
            status(500, "no").header("x-should-retry", "false"),
            3,
            "answered 500",
        ),
        lasting_fault("400", status(400, "max_tokens is too large"), 3, "answered 400: max_tokens"),
        lasting_fault("401", status(401, "bad key"), 3, "Check the key"),
        lasting_fault("403", status(403, "not yours"), 3, "may not use this model"),
        lasting_fault("404", status(404, "no such model"), 3, "--model"),
        lasting_fault("413", status(413, "too large"), 3, "too large"),
        lasting_fault("422", status(422, "unknown member"), 3, "unknown member"),
        lasting_fault("402, nothing left", status(402, "pay first"), 3, "nothing left"),
        lasting_fault(
            "context too long",
            status(400, "prompt is too long: 9 tokens > 8 maximum"),
            3,
            "too long for this model",
        ),
        lasting_fault(
            "redirect",
            status(302, "moved").header("location", "http://127.0.0.1:1/"),
            3,
            "--model-base-url",
        ),
        passing_fault("close before any byte", 1, Fault::CloseBeforeAnyByte),
        lasting_fault("close before any byte, for ever", Fault::CloseBeforeAnyByte, 3, "cannot be reached"),
        passing_fault("reset in mid-stream", 1, Fault::ResetMidStream),
        passing_fault("clean but truncated stream", 1, Fault::TruncateCleanly),
        lasting_fault("truncated for ever", Fault::TruncateCleanly, 3, "before its end"),
        passing_fault("half an event at the end", 1, Fault::CutMidEvent),
        FaultCase {
            patience: ClientPatience::FOR_SILENCE,
            ..passing_fault("silent stall in mid-stream", 1, Fault::Stall(Duration::from_secs(3600)))
        },
        FaultCase {
            patience: ClientPatience::FOR_LASTING_SILENCE,
            ..lasting_fault("stall for ever", Fault::Stall(Duration::from_secs(3600)), 3, "sent nothing for")
        },
        passing_fault("silence, then the end", 1, Fault::SilenceFirst(Duration::from_millis(500))),
        FaultCase {
            patience: ClientPatience::FOR_ENDLESS,
            ..passing_fault("body never ends", 1, Fault::NeverEnds)
        },
        passing_fault("error event at the start", 1, Fault::ErrorEvent(FaultPoint::AtStart)),
        passing_fault("error event halfway", 1, Fault::ErrorEvent(FaultPoint::Halfway)),
        lasting_fault("error event for ever", Fault::ErrorEvent(FaultPoint::Halfway), 3, "overloaded"),
        passing_fault("unknown event", 1, Fault::UnknownEvent),
        passing_fault("an event that is no JSON", 1, Fault::BrokenJson),
        passing_fault("web page with 200", 1, Fault::Garbage),
        lasting_fault("web page with 200, for ever", Fault::Garbage, 3, "web page"),
        passing_fault("gzip cut short", 1, Fault::GzipCut),
        passing_fault("empty answer", 1, Fault::EmptyAnswer),
        lasting_fault("empty answer for ever", Fault::EmptyAnswer, 1, "nothing, twice"),
        case(
            "unknown stop reason",
            good_call().stop(lathe_protocol::StopReason::Other("novel".to_owned())),
            Expected::Success(1),
        ),
        odd_answer(
            "answer cut at the length limit",
            say("I will now").stop(lathe_protocol::StopReason::Length),
        ),
        odd_answer("unknown tool", call("c0", "no_such_tool", json!({ "x": 1 }))),
        odd_answer("empty text for arguments", say("hm").call_text("c0", "bash", "")),
        odd_answer(
            "huge numbers",
            call("c0", "bash", json!({})).call_text("c9", "bash", r#"{"command":"true","timeout":1e99}"#),
        ),
        case(
            "duplicate keys",
            say("hm").call_text("c1", "bash", r#"{"command":"false","command":"echo x >> count"}"#),
            Expected::Success(1),
        ),
        case(
            "two calls of one id",
            good_call().call("c1", "bash", json!({ "command": "echo x >> count" })),
            Expected::Success(2),
        ),
        case(
            "50 calls in one answer",
            {
                (0..50).fold(say("many"), |answer, n| {
                    answer.call(&format!("c{n}"), "bash", json!({ "command": "echo x >> count" }))
                })
            },
            Expected::Success(50),
        ),
        case("text after a call", good_call().say("after"), Expected::Success(1)),
        lasting_fault("50 MB answer", Fault::Huge, 3, "larger than"),
        unusual_writes("cut at every byte", Options { chop: Chunking::Bytes(1), ..base() }),
        unusual_writes("cut anywhere", Options { chop: Chunking::Random(7), ..base() }),
        unusual_writes("CR LF", Options { line_end: LineEnd::CrLf, chop: Chunking::Bytes(3), ..base() }),
        unusual_writes("bare CR", Options { line_end: LineEnd::Cr, ..base() }),
        unusual_writes("comments", Options { comments: true, ..base() }),
        unusual_writes("data of many lines", Options { multiline: true, chop: Chunking::Bytes(5), ..base() }),
        FaultCase {
            target: Target::Nobody,
            ..case("nobody listens", good_call(), Expected::Error(3, "cannot be reached"))
        },
        FaultCase {
            target: Target::NoName,
            ..case("no such name", good_call(), Expected::Error(3, "cannot be reached"))
        },
        FaultCase {
            target: Target::PlainAsTls,
            ..case("TLS failure", good_call(), Expected::Error(3, "cannot be reached"))
        },
    ];
    // Where the server parses arguments itself, it is the one that fails at them.
    let malformed = good_call().fails(1, Fault::MalformedArguments);
    cases.push(match wire {
        Wire::Chat | Wire::Messages | Wire::Responses => {
            let first =
                call("c0", "bash", json!({ "command": "echo wrong" })).fails(1, Fault::MalformedArguments);
            odd_answer("malformed arguments", first)
        }
        Wire::Gemini | Wire::Ollama => case("malformed arguments", malformed, Expected::Success(1)),
    });
    cases.push(match wire {
        Wire::Chat | Wire::Messages | Wire::Responses => {
            odd_answer("arguments that are no JSON", say("hm").call_text("c0", "bash", "command=ls"))
        }
        Wire::Gemini | Wire::Ollama => odd_answer("no arguments", call("c0", "bash", json!({}))),
    });
    cases
}

impl FaultCase {
    /// Runs it with the real binary.
    pub fn run(&self, binary: &Path, wire: Wire) -> FaultOutcome {
        let repo = TempRepo::new(&[]);
        let model = FakeModel::start(self.script.clone(), self.options.clone());
        let lathe = Lathe::new(binary).in_dir(repo.path()).timeout(LIMIT * 2);
        std::fs::create_dir_all(lathe.home()).expect("a folder can be made");
        std::fs::write(lathe.home().join("config.toml"), self.patience.settings())
            .expect("a file can be written");
        let lathe =
            lathe.args(["run", "do it", "--mode", "full-auto", "--output", "json"]).with_wire(&model, wire);
        let port = model.base_url_for(wire).rsplit(':').next().unwrap_or_default().to_owned();
        let ran = match self.target {
            Target::Server => lathe,
            Target::Nobody => lathe.args(["--model-base-url", "http://127.0.0.1:1/v1"]),
            Target::NoName => lathe.args(["--model-base-url", "http://no..name/v1"]),
            Target::PlainAsTls => lathe.args(["--model-base-url", &format!("https://127.0.0.1:{port}")]),
        }
        .run();
        let mut wrong = Vec::new();
        let count = std::fs::read_to_string(repo.path().join("count")).unwrap_or_default().lines().count();
        let (code, runs, words) = match self.expected {
            Expected::Success(runs) => (0, runs, ""),
            Expected::Error(code, words) => (code, 0, words),
        };
        if ran.code != code {
            wrong.push(format!("exit {} instead of {code}: {}{}", ran.code, ran.stdout, ran.stderr));
        }
        if count != runs {
            wrong.push(format!("the call ran {count} times instead of {runs}"));
        }
        if !ran.stdout.contains(words) && !ran.stderr.contains(words) {
            wrong.push(format!("`{words}` is not said: {}{}", ran.stdout, ran.stderr));
        }
        wrong.extend(model.violations().into_iter().map(|violation| format!("refused: {violation}")));
        if ran.elapsed > LIMIT {
            wrong.push(format!("took {:?}", ran.elapsed));
        }
        FaultOutcome { code: ran.code, elapsed: ran.elapsed, requests: model.requests().len(), wrong }
    }
}
