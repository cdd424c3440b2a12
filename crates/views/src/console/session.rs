//! A session's updates as lines for people, as they happen.

use std::collections::{HashMap, HashSet};

use lathe_protocol::{
    CHANGED_BY_OTHERS, CallDecided, CallFinished, CallId, Event, Fact, Frame, FrameBody, ModelAnswered,
    ReplayDrifted, StepNo, TaskFinished, Verdict, clean, text_of,
};

use super::styled::{Style, Styled};
use crate::lengths::shortened;
use crate::messages::{Language, Noun, Say, Tell};
use crate::wire::lakeview_line;

/// Lines of a command's output that are shown.
const OUTPUT_LINES: usize = 12;

/// Bytes of one line that are inspected.
const LINE_BYTES: usize = 4096;

/// Characters of one line of output that are shown.
const LINE_CHARS: usize = 200;

/// Characters of a command that are shown.
const COMMAND_CHARS: usize = 2000;

/// Lines of an edit's diff that are shown.
const DIFF_LINES: usize = 24;

/// Number of paths changed by others that are named for one call.
const NAMED: usize = 20;

/// The view of a session on a console. It takes events and frames in their order, from a running session or from a
/// journal, and gives the lines for each. It knows no terminal: a line carries marks of its style.
pub struct Console {
    language: Language,
    step: Option<StepNo>,
    /// True if the text of this step was shown while it came.
    streamed: bool,
    /// True if the cursor stands after text without a line break.
    open_line: bool,
    calls: HashMap<CallId, CallDecided>,
    /// Output lines shown of the running command.
    shown: usize,
    hidden: usize,
    partial: String,
    /// True if the lines that are only counted end without a line break.
    unended: bool,
    started: HashSet<CallId>,
}

impl Console {
    pub fn new(language: Language) -> Self {
        Self {
            language,
            step: None,
            streamed: false,
            open_line: false,
            calls: HashMap::new(),
            shown: 0,
            hidden: 0,
            partial: String::new(),
            unended: false,
            started: HashSet::new(),
        }
    }

    fn say(&self, say: Say) -> &'static str {
        say.text(self.language)
    }

    pub fn frame(&mut self, frame: &Frame) -> Styled {
        match &frame.body {
            FrameBody::Text(text) => {
                let head = self.begin_step(frame.step);
                let indent = if self.open_line { "" } else { "  " };
                (self.streamed, self.open_line) = (true, true);
                head.and(indent).and(clean(text).replace('\n', "\n  "))
            }
            FrameBody::Thinking(_) | FrameBody::CallForming(_) => self.begin_step(frame.step),
            FrameBody::Output { text, .. } => self.live_output(text),
            FrameBody::Retry { wait_ms, reason, .. } => {
                let (seconds, reason) = (*wait_ms as f64 / 1000.0, &*clean(reason));
                let line = Tell::Retry { seconds, reason }.text(self.language);
                self.note(Style::Yellow, line)
            }
            FrameBody::Warning(words) => {
                let line = format!("{}{}", Say::Warning.label(self.language), clean(words));
                self.note(Style::Yellow, line)
            }
        }
    }

    /// The lines of an event. `diff` is what the finished call changed.
    pub fn event(&mut self, event: &Event, diff: &str) -> Styled {
        match &event.fact {
            Fact::TaskGiven(given) => {
                let text = clean(&given.text).replace('\n', "\n      ");
                Styled::of(Style::Bold, format!("{:<5}", self.say(Say::Task))).and(format!(" {text}\n"))
            }
            Fact::ModelAnswered(answered) => self.answered(event, answered),
            Fact::CallDecided(decided) => {
                if let Some(call) = &event.place.call {
                    self.calls.insert(call.clone(), decided.clone());
                }
                Styled::default()
            }
            Fact::CallStarted(_) => self.started(event),
            Fact::CallFinished(finished) => self.finished(event, finished, diff),
            Fact::Reminded(reminded) => Styled::new("  ").styled(Style::Dim, clean(&reminded.text)).and("\n"),
            Fact::Steered(steered) => {
                let text = format!(" {}\n", clean(&steered.text));
                self.close_line().and("  ").styled(Style::Bold, "›").and(text)
            }
            Fact::StepSummarised(summary) => {
                let step = event.place.step.unwrap_or_default();
                let text = &*clean(&lakeview_line(summary));
                let line = Tell::Summary { step, text }.text(self.language);
                self.note(Style::Dim, line.replace('\n', " "))
            }
            Fact::ReplayDrifted(drift) => self.drifted(event, drift),
            Fact::TaskFinished(finished) => self.ended(finished),
            Fact::SessionOpened(_)
            | Fact::OptionsChanged(_)
            | Fact::EpochStarted(_)
            | Fact::BaselineTaken(_)
            | Fact::RunResumed(_)
            | Fact::CancelAsked(_)
            | Fact::ModelAsked(_)
            | Fact::ModelFailed(_)
            | Fact::Reflected(_)
            | Fact::Rewound(_)
            | Fact::RewindUndone(_)
            | Fact::FilesRestored(_)
            | Fact::QuestionAsked(_)
            | Fact::CommandRan(_)
            | Fact::ApprovalAsked(_)
            | Fact::ApprovalGiven(_)
            | Fact::ApprovalExpired(_)
            | Fact::SessionNamed(_)
            | Fact::EditsReviewed(_)
            | Fact::CommandTaken(_) => Styled::default(),
            Fact::Unknown(unknown) => {
                self.note(Style::Yellow, format!("! {}", clean(&unknown.description())))
            }
        }
    }

    /// A line of its own, indented like everything of a step.
    fn note(&mut self, style: Style, line: String) -> Styled {
        self.close_line().and("  ").styled(style, line).and("\n")
    }

    fn begin_step(&mut self, step: Option<StepNo>) -> Styled {
        if step.is_none() || step == self.step {
            return Styled::default();
        }
        self.step = step;
        self.streamed = false;
        let head = format!("{} {}", self.say(Say::Step), step.unwrap_or_default());
        self.close_line().and("\n").styled(Style::Head, head).and("\n")
    }

    fn close_line(&mut self) -> Styled {
        Styled::new(if std::mem::take(&mut self.open_line) { "\n" } else { "" })
    }

    fn answered(&mut self, event: &Event, answered: &ModelAnswered) -> Styled {
        let mut out = self.begin_step(event.place.step);
        let text = text_of(&answered.blocks);
        if !self.streamed && !text.is_empty() {
            out = out.and(format!("  {}", clean(&text).replace('\n', "\n  ")));
            self.open_line = true;
        }
        out.then(self.close_line())
    }

    fn started(&mut self, event: &Event) -> Styled {
        (self.shown, self.hidden, self.unended) = (0, 0, false);
        self.partial.clear();
        self.started.extend(event.place.call.clone());
        let Some(decided) = event.place.call.as_ref().and_then(|call| self.calls.get(call)) else {
            return Styled::default();
        };
        let about = clean(&decided.about);
        let line = match decided.tool.as_str() {
            "bash" => Styled::of(Style::Green, "$")
                .and(format!(" {}", clipped(about.trim_end()).replace('\n', "\n    "))),
            "think" => Styled::of(
                Style::Dim,
                format!("{}{}", Say::Thinking.label(self.language), about.trim().replace('\n', "\n  ")),
            ),
            "done" => return Styled::default(),
            _ => Styled::of(Style::Cyan, "▸").and(format!(" {about}")),
        };
        self.close_line().and("  ").then(line).and("\n")
    }

    /// Whole lines of output, up to a number; the rest is only counted, because a command may print gigabytes.
    fn live_output(&mut self, text: &str) -> Styled {
        let mut out = Styled::default();
        let mut rest = text;
        while self.shown < OUTPUT_LINES && !rest.is_empty() {
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let (piece, after) = rest.split_at(end);
            if self.partial.len() < LINE_BYTES {
                self.partial.push_str(piece);
            }
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                out = out.then(self.output_line(line.trim_end_matches('\n')));
            }
            rest = after;
        }
        if !rest.is_empty() {
            self.hidden += rest.bytes().filter(|byte| *byte == b'\n').count();
            self.unended = !rest.ends_with('\n');
        }
        out
    }

    fn output_line(&mut self, line: &str) -> Styled {
        if self.shown >= OUTPUT_LINES {
            self.hidden += 1;
            return Styled::default();
        }
        self.shown += 1;
        let line: String = clean(line).chars().take(LINE_CHARS).collect();
        Styled::new("    ").styled(Style::Dim, line).and("\n")
    }

    fn finished(&mut self, event: &Event, finished: &CallFinished, diff: &str) -> Styled {
        let decided = event.place.call.as_ref().and_then(|call| self.calls.get(call)).cloned();
        let tool = decided.as_ref().map(|decided| decided.tool.as_str()).unwrap_or_default();
        let mut out = Styled::default();
        if tool == "bash" && self.shown == 0 && self.hidden == 0 && self.partial.is_empty() {
            // Nothing was shown while it ran: this is a journal, or a command that printed at its end. The verdict
            // says how it ended.
            let text = clean(&finished.text);
            let lines = text
                .lines()
                .enumerate()
                .filter(|(at, line)| !is_tag(line) && !is_ending(*at, line) && !has_own_line(finished, line));
            for (_, line) in lines {
                out = out.then(self.output_line(line));
            }
        }
        if !self.partial.is_empty() {
            let rest = std::mem::take(&mut self.partial);
            out = out.then(self.output_line(&rest));
        }
        self.hidden += usize::from(std::mem::take(&mut self.unended));
        if self.hidden > 0 {
            out = out.then(self.more_lines(self.hidden));
        }
        (self.shown, self.hidden) = (0, 0);
        out = out.then(self.diff_lines(diff));
        for lost in &finished.not_undoable {
            let words = format!("    {}{}", Say::NotUndoable.label(self.language), clean(lost));
            out = out.styled(Style::Yellow, words).and("\n");
        }
        if !finished.others.is_empty() {
            let (count, named) = (finished.others.len(), finished.others.iter().take(NAMED));
            let mut named = named.map(|path| clean(path)).collect::<Vec<_>>().join(", ");
            if count > NAMED {
                named += " …";
            }
            let words = format!("    {} {named}", self.say(Say::OthersChanged));
            out = out.styled(Style::Yellow, words).and("\n");
        }
        for words in &finished.broken {
            out = out.and("    ").styled(Style::Yellow, clean(words)).and("\n");
        }
        let started = event.place.call.as_ref().is_some_and(|call| self.started.contains(call));
        let verdict = self.verdict(decided.as_ref(), finished, started);
        self.close_line().then(out).then(verdict)
    }

    fn more_lines(&self, count: usize) -> Styled {
        let more = format!("… {}", Noun::HiddenLine.count(count, self.language));
        Styled::new("    ").styled(Style::Dim, more).and("\n")
    }

    fn diff_lines(&self, diff: &str) -> Styled {
        // One file is named by the call; of several each must be.
        let several = diff.split_terminator('\n').filter(|line| line.starts_with("+++ ")).count() > 1;
        let body: Vec<&str> = diff.split_terminator('\n').filter(|line| several || !is_name(line)).collect();
        let shown = body.iter().take(DIFF_LINES);
        let out = shown.fold(Styled::default(), |out, line| out.and("    ").then(Styled::diff(line)));
        match body.len().saturating_sub(DIFF_LINES) {
            0 => out,
            more => out.then(self.more_lines(more)),
        }
    }

    /// A line only where there is something to report: a failure, a refusal, an exit code.
    fn verdict(&self, decided: Option<&CallDecided>, finished: &CallFinished, started: bool) -> Styled {
        if let Some(decided) = decided.filter(|decided| decided.decision.verdict == Verdict::Deny) {
            let what = format!("✘ {}{}", Say::Denied.label(self.language), clean(&decided.about));
            let why = format!("{} ({})", decided.decision.reason, decided.decision.rule);
            return refusal(what, why);
        }
        if let Some(error) = &finished.error {
            let message = clean(&error.message).lines().next().unwrap_or_default().to_owned();
            if !started {
                // Its own line was never shown, so it is named here.
                let about = decided.map_or(finished.name.as_str(), |decided| decided.about.as_str());
                let about = clean(about).lines().next().unwrap_or_default().to_owned();
                return refusal(format!("✘ {about}"), message);
            }
            let words = format!("✘ {}{message}", Say::Failed.label(self.language));
            return Styled::new("    ").styled(Style::Red, words).and("\n");
        }
        let data = finished.data.as_ref().and_then(|data| data.to_value().ok());
        match data.as_ref().and_then(|data| data.get("exit_code")?.as_i64()) {
            Some(code) if code != 0 => {
                Styled::new("    ").styled(Style::Yellow, format!("{} {code}", self.say(Say::Exit))).and("\n")
            }
            Some(_) | None => Styled::default(),
        }
    }

    fn drifted(&mut self, event: &Event, drift: &ReplayDrifted) -> Styled {
        let step = event.place.step.unwrap_or_default();
        let head = Tell::Drifted { step, place: &drift.place }.text(self.language);
        let then = format!("{:<9} {}", self.say(Say::Recorded), clean(&drift.recorded));
        let now = format!("{:<9} {}", self.say(Say::Now), clean(&drift.now));
        self.note(Style::Yellow, head).and(format!("    {then}\n    {now}\n"))
    }

    fn ended(&mut self, finished: &TaskFinished) -> Styled {
        let word = self.say(Say::ending(finished.ending));
        let (style, sign) =
            if finished.ending.is_success() { (Style::Green, "✔") } else { (Style::Red, "✘") };
        let head = self.close_line().and("\n").styled(style, format!("{sign} {word}"));
        head.and(format!("\n{}\n", clean(&finished.result)))
    }
}

/// A call that did not begin, with the reason.
fn refusal(what: String, why: String) -> Styled {
    Styled::new("  ").styled(Style::Red, what).and("\n    ").styled(Style::Dim, why).and("\n")
}

/// The text by which a toolset reports to the model how a command ended: Lathe's comes first, Trae's in a line of its
/// own.
fn is_ending(at: usize, line: &str) -> bool {
    let code = line.trim_start_matches("Error: ").strip_prefix("exit code ");
    let plain = code.is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
    let first = ["exit code ", "timed out after ", "the shell itself was killed", "cancelled by the user"];
    plain || (at == 0 && first.iter().any(|words| line.starts_with(words)))
}

/// A command of reasonable length; the whole is in the journal.
fn clipped(command: &str) -> String {
    let lines: Vec<&str> = command.lines().collect();
    let mut text: String = lines.iter().take(OUTPUT_LINES).copied().collect::<Vec<_>>().join("\n");
    if lines.len() > OUTPUT_LINES {
        text.push_str("\n…");
    }
    shortened(&text, COMMAND_CHARS)
}

/// The notes at the end of a result that the console prints as lines of their own.
fn has_own_line(finished: &CallFinished, line: &str) -> bool {
    let note = |words: &String| {
        line.strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
            .is_some_and(|line| line == clean(words))
    };
    !finished.others.is_empty() && line.starts_with(CHANGED_BY_OTHERS) || finished.broken.iter().any(note)
}

/// The tags around foreign text in a result, which users need not see.
fn is_tag(line: &str) -> bool {
    matches!(line, "<stdout>" | "</stdout>" | "<stderr>" | "</stderr>")
}

/// A line of a diff that names its file.
fn is_name(line: &str) -> bool {
    line.starts_with("---") || line.starts_with("+++")
}
