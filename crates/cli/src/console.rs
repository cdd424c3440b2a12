//! The `simple` console: a session's updates as lines for people, as they happen. A pure view: it can be fed from a running
//! session or from a journal.

use std::collections::{HashMap, HashSet};

use lathe_plan::ModeFrom;
use lathe_protocol::{
    CHANGED_BY_OTHERS, CallDecided, CallFinished, CallId, Ending, Event, Fact, Frame, FrameBody, Mode,
    ModelAnswered, SessionOptions, StepNo, Verdict, plain_address, text_of,
};
use lathe_views::lakeview_line;

use crate::term::{Paint, clean};
use crate::words::{Language, Say};

/// Lines of a command's output that are shown.
const OUTPUT_LINES: usize = 12;

/// Bytes of one line that are looked at.
const LINE_BYTES: usize = 4096;

/// Lines of an edit's diff that are shown.
const DIFF_LINES: usize = 24;

/// Paths of others that are named of one call.
const NAMED: usize = 20;

pub(crate) struct Console {
    paint: Paint,
    language: Language,
    mode_from: ModeFrom,
    step: Option<StepNo>,
    /// Whether the text of this step was shown while it came.
    streamed: bool,
    /// Whether the cursor stands behind text without a line break.
    open_line: bool,
    calls: HashMap<CallId, CallDecided>,
    /// Output lines shown of the running command.
    shown: usize,
    hidden: usize,
    partial: String,
    /// Whether the lines that are only counted end without a line break.
    unended: bool,
    started: HashSet<CallId>,
}

impl Console {
    pub(crate) fn new(color: bool, language: Language) -> Self {
        Self {
            paint: Paint::new(color),
            language,
            mode_from: ModeFrom::Settings,
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

    pub(crate) fn mode_from(mut self, mode_from: ModeFrom) -> Self {
        self.mode_from = mode_from;
        self
    }

    fn say(&self, say: Say) -> &'static str {
        say.text(self.language)
    }

    /// The mode and its reason, where it is not one that somebody set or expects.
    pub(crate) fn unusual_mode(&self, options: &SessionOptions) -> Option<String> {
        match self.mode_from {
            ModeFrom::Settings | ModeFrom::Asked => None,
            ModeFrom::MustPatch => Some(format!(
                "{} {}{}",
                self.say(Say::Mode),
                options.mode.as_str(),
                self.say(Say::ModeOfMustPatch)
            )),
        }
    }

    /// The first line: what will happen and under which rules. The host is told where it is not the provider's own, the
    /// folder where the user does not stand in it.
    pub(crate) fn opening(&self, options: &SessionOptions, folder: Option<&str>) -> String {
        let mode = self
            .unusual_mode(options)
            .unwrap_or_else(|| format!("{} {}", self.say(Say::Mode), options.mode.as_str()));
        let line = format!(
            "lathe {} · {} {} ({}{}) · {mode} · {} · {} {} {}{}{}",
            env!("CARGO_PKG_VERSION"),
            self.say(Say::Model),
            clean(&options.model.model),
            clean(&options.model.provider),
            clean(&host_of(options)),
            self.say(Say::Sandbox),
            self.say(Say::AtMost),
            options.limits.steps(),
            self.say(Say::steps(options.limits.steps().into())),
            crate::models::budget_words(&options.limits.budget),
            folder
                .map(|folder| format!(" · {} {}", self.say(Say::Folder), clean(folder)))
                .unwrap_or_default(),
        );
        let hint = match options.mode {
            // No question will say it, so it is said before the first line runs.
            Mode::FullAuto if options.model.provider != "cassette" => {
                format!("{}\n", self.paint.dim(self.say(Say::NotBack)))
            }
            _ if self.mode_from == ModeFrom::Asked => String::new(),
            Mode::FullAuto | Mode::Plan => String::new(),
            Mode::Default | Mode::AutoEdit => format!("{}\n", self.paint.yellow(self.say(Say::ModeHint))),
        };
        format!("{}\n{hint}", self.paint.dim(&line))
    }

    pub(crate) fn frame(&mut self, frame: &Frame) -> String {
        match &frame.body {
            FrameBody::Text(text) => {
                let mut out = self.begin_step(frame.step);
                if !self.open_line {
                    out.push_str("  ");
                }
                self.streamed = true;
                self.open_line = true;
                out.push_str(&clean(text).replace('\n', "\n  "));
                out
            }
            FrameBody::Thinking(_) | FrameBody::CallForming(_) => self.begin_step(frame.step),
            FrameBody::Output { text, .. } => self.live_output(text),
            FrameBody::Retry { wait_ms, reason, .. } => {
                let line =
                    format!("{} {:.1} s: {}", self.say(Say::Retry), *wait_ms as f64 / 1000.0, clean(reason));
                format!("{}  {}\n", self.close_line(), self.paint.yellow(&line))
            }
            FrameBody::Warning(words) => {
                let line = format!("{}: {}", self.say(Say::Warning), clean(words));
                format!("{}  {}\n", self.close_line(), self.paint.yellow(&line))
            }
        }
    }

    /// `diff` is what the finished call changed.
    pub(crate) fn event(&mut self, event: &Event, diff: &str) -> String {
        match &event.fact {
            Fact::TaskGiven(given) => {
                let text = clean(&given.text).replace('\n', "\n      ");
                format!("{} {text}\n", self.paint.bold(&format!("{:<5}", self.say(Say::Task))))
            }
            Fact::ModelAnswered(answered) => self.answered(event, answered),
            Fact::CallDecided(decided) => {
                if let Some(call) = &event.place.call {
                    self.calls.insert(call.clone(), decided.clone());
                }
                String::new()
            }
            Fact::CallStarted(_) => self.started(event),
            Fact::CallFinished(finished) => self.finished(event, finished, diff),
            Fact::Reminded(reminded) => format!("  {}\n", self.paint.dim(&clean(&reminded.text))),
            Fact::Steered(steered) => {
                format!("{}  {} {}\n", self.close_line(), self.paint.bold("›"), clean(&steered.text))
            }
            Fact::StepSummarised(summary) => {
                let step = event.place.step.unwrap_or_default();
                let line = format!("{} {step}: {}", self.say(Say::Step), clean(&lakeview_line(summary)));
                format!("{}  {}\n", self.close_line(), self.paint.dim(&line.replace('\n', " ")))
            }
            Fact::Reflected(_) => String::new(),
            Fact::ReplayDrifted(drift) => {
                let head = format!(
                    "{}: {} {}, {}",
                    self.say(Say::Drift),
                    self.say(Say::Step),
                    event.place.step.unwrap_or_default(),
                    drift.place
                );
                let then = format!("{:<9} {}", self.say(Say::Recorded), clean(&drift.recorded));
                let now = format!("{:<9} {}", self.say(Say::Now), clean(&drift.now));
                format!("{}  {}\n    {then}\n    {now}\n", self.close_line(), self.paint.yellow(&head))
            }
            Fact::TaskFinished(finished) => {
                let word = match finished.ending {
                    Ending::Done => Say::Done,
                    Ending::Answered => Say::Answered,
                    Ending::Failed => Say::NotDone,
                    Ending::ModelUnavailable => Say::ModelUnavailable,
                    Ending::StepsUsedUp => Say::StepsUsedUp,
                    Ending::BudgetUsedUp => Say::BudgetUsedUp,
                    Ending::Denied => Say::DeniedByPolicy,
                    Ending::DiskFull => Say::DiskFull,
                    Ending::Cancelled => Say::Cancelled,
                };
                let head = if finished.ending.is_success() {
                    self.paint.green(&format!("✔ {}", self.say(word)))
                } else {
                    self.paint.red(&format!("✘ {}", self.say(word)))
                };
                format!("{}\n{head}\n{}\n", self.close_line(), clean(&finished.result))
            }
            Fact::SessionOpened(_)
            | Fact::OptionsChanged(_)
            | Fact::EpochStarted(_)
            | Fact::BaselineTaken(_)
            | Fact::RunResumed(_)
            | Fact::CancelAsked(_)
            | Fact::ModelAsked(_)
            | Fact::ModelFailed(_)
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
            | Fact::CommandTaken(_) => String::new(),
            Fact::Unknown(unknown) => {
                let words = format!("! {}", clean(&unknown.words()));
                format!("{}  {}\n", self.close_line(), self.paint.yellow(&words))
            }
        }
    }

    fn begin_step(&mut self, step: Option<StepNo>) -> String {
        if step.is_none() || step == self.step {
            return String::new();
        }
        self.step = step;
        self.streamed = false;
        let head = format!("{} {}", self.say(Say::Step), step.unwrap_or_default());
        format!("{}\n{}\n", self.close_line(), self.paint.bold(&self.paint.cyan(&head)))
    }

    fn close_line(&mut self) -> &'static str {
        if std::mem::take(&mut self.open_line) { "\n" } else { "" }
    }

    fn answered(&mut self, event: &Event, answered: &ModelAnswered) -> String {
        let mut out = self.begin_step(event.place.step);
        let text = text_of(&answered.blocks);
        if !self.streamed && !text.is_empty() {
            out.push_str(&format!("  {}", clean(&text).replace('\n', "\n  ")));
            self.open_line = true;
        }
        out.push_str(self.close_line());
        out
    }

    fn started(&mut self, event: &Event) -> String {
        (self.shown, self.hidden, self.unended) = (0, 0, false);
        self.partial.clear();
        self.started.extend(event.place.call.clone());
        let Some(decided) = event.place.call.as_ref().and_then(|call| self.calls.get(call)) else {
            return String::new();
        };
        let about = clean(&decided.about);
        let line = match decided.tool.as_str() {
            "bash" => {
                format!("{} {}", self.paint.green("$"), clipped(about.trim_end()).replace('\n', "\n    "))
            }
            "think" => {
                let thought = format!("{}: {}", self.say(Say::Thinking), about.trim().replace('\n', "\n  "));
                self.paint.dim(&thought)
            }
            "done" => return String::new(),
            _ => format!("{} {about}", self.paint.cyan("▸")),
        };
        format!("{}  {line}\n", self.close_line())
    }

    /// Whole lines of output, up to a number; the rest is only counted, because a command may print gigabytes.
    fn live_output(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while self.shown < OUTPUT_LINES && !rest.is_empty() {
            let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
            let (piece, after) = rest.split_at(end);
            if self.partial.len() < LINE_BYTES {
                self.partial.push_str(piece);
            }
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut self.partial);
                out.push_str(&self.output_line(line.trim_end_matches('\n')));
            }
            rest = after;
        }
        if !rest.is_empty() {
            self.hidden += rest.bytes().filter(|byte| *byte == b'\n').count();
            self.unended = !rest.ends_with('\n');
        }
        out
    }

    fn output_line(&mut self, line: &str) -> String {
        if self.shown >= OUTPUT_LINES {
            self.hidden += 1;
            return String::new();
        }
        self.shown += 1;
        let line: String = clean(line).chars().take(200).collect();
        format!("    {}\n", self.paint.dim(&line))
    }

    fn finished(&mut self, event: &Event, finished: &CallFinished, diff: &str) -> String {
        let decided = event.place.call.as_ref().and_then(|call| self.calls.get(call)).cloned();
        let tool = decided.as_ref().map(|decided| decided.tool.as_str()).unwrap_or_default();
        let mut out = String::new();
        if tool == "bash" && self.shown == 0 && self.hidden == 0 && self.partial.is_empty() {
            // Nothing was shown while it ran: this is a journal, or a command that printed at its end.
            // How it ended is told by the verdict.
            let text = clean(&finished.text);
            let lines = text.lines().enumerate().filter(|(at, line)| {
                !is_tag(line) && !is_ending(*at, line) && !is_told_apart(finished, line)
            });
            for (_, line) in lines {
                out.push_str(&self.output_line(line));
            }
        }
        if !self.partial.is_empty() {
            let rest = std::mem::take(&mut self.partial);
            out.push_str(&self.output_line(&rest));
        }
        self.hidden += usize::from(std::mem::take(&mut self.unended));
        if self.hidden > 0 {
            out.push_str(&format!(
                "    {}\n",
                self.paint.dim(&format!("… {} {}", self.hidden, self.say(Say::more_lines(self.hidden))))
            ));
        }
        (self.shown, self.hidden) = (0, 0);
        out.push_str(&self.diff_lines(diff));
        for lost in &finished.not_undoable {
            let words = format!("    {}: {}", self.say(Say::NotUndoable), clean(lost));
            out.push_str(&format!("{}\n", self.paint.yellow(&words)));
        }
        if !finished.others.is_empty() {
            let (count, named) = (finished.others.len(), finished.others.iter().take(NAMED));
            let mut named = named.map(|path| clean(path)).collect::<Vec<_>>().join(", ");
            if count > NAMED {
                named += " …";
            }
            let words = format!("    {} {named}", self.say(Say::OthersChanged));
            out.push_str(&format!("{}\n", self.paint.yellow(&words)));
        }
        for words in &finished.broken {
            out.push_str(&format!("    {}\n", self.paint.yellow(&clean(words))));
        }
        let started = event.place.call.as_ref().is_some_and(|call| self.started.contains(call));
        out.push_str(&self.verdict(decided.as_ref(), finished, started));
        format!("{}{out}", self.close_line())
    }

    fn diff_lines(&self, diff: &str) -> String {
        // One file is named by the call; of several each must be.
        let several = diff.split_terminator('\n').filter(|line| line.starts_with("+++ ")).count() > 1;
        let body: Vec<&str> = diff.split_terminator('\n').filter(|line| several || !is_name(line)).collect();
        let mut out = String::new();
        for line in body.iter().take(DIFF_LINES) {
            out.push_str(&format!("    {}", self.paint.diff(line)));
        }
        if body.len() > DIFF_LINES {
            let more = body.len() - DIFF_LINES;
            let more = format!("… {more} {}", self.say(Say::more_lines(more)));
            out.push_str(&format!("    {}\n", self.paint.dim(&more)));
        }
        out
    }

    /// A line only where something is to be said: a failure, a refusal, an exit code.
    fn verdict(&self, decided: Option<&CallDecided>, finished: &CallFinished, started: bool) -> String {
        if let Some(decided) = decided.filter(|decided| decided.decision.verdict == Verdict::Deny) {
            let what = format!("✘ {}: {}", self.say(Say::Denied), clean(&decided.about));
            let why = format!("{} ({})", decided.decision.reason, decided.decision.rule);
            return format!("  {}\n    {}\n", self.paint.red(&what), self.paint.dim(&why));
        }
        if let Some(error) = &finished.error {
            let message = clean(&error.message).lines().next().unwrap_or_default().to_owned();
            if !started {
                // Its own line was never shown, so it is named here.
                let about = decided.map_or(finished.name.as_str(), |decided| decided.about.as_str());
                let about = clean(about).lines().next().unwrap_or_default().to_owned();
                return format!(
                    "  {}\n    {}\n",
                    self.paint.red(&format!("✘ {about}")),
                    self.paint.dim(&message)
                );
            }
            return format!("    {}\n", self.paint.red(&format!("✘ {}: {message}", self.say(Say::Failed))));
        }
        let data = finished.data.as_ref().and_then(|data| data.to_value().ok());
        match data.as_ref().and_then(|data| data.get("exit_code")?.as_i64()) {
            Some(code) if code != 0 => format!("    {}\n", self.paint.yellow(&format!("exit {code}"))),
            Some(_) | None => String::new(),
        }
    }
}

/// The words by which a toolset tells the model how a command ended: Lathe's come first, Trae's in a line of their own.
fn is_ending(at: usize, line: &str) -> bool {
    let code = line.trim_start_matches("Error: ").strip_prefix("exit code ");
    let plain = code.is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
    let first = ["exit code ", "timed out after ", "the shell itself was killed", "cancelled by the user"];
    plain || (at == 0 && first.iter().any(|words| line.starts_with(words)))
}

/// The host of a model that is not at its provider's own address, as it stands after the provider.
fn host_of(options: &SessionOptions) -> String {
    let Some(url) = options.model.base_url.as_deref().map(plain_address) else { return String::new() };
    let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    format!(" @ {}", host.split('/').next().unwrap_or_default())
}

/// A command of reasonable length; the whole is in the journal.
fn clipped(command: &str) -> String {
    let lines: Vec<&str> = command.lines().collect();
    let mut text: String = lines.iter().take(OUTPUT_LINES).copied().collect::<Vec<_>>().join("\n");
    if lines.len() > OUTPUT_LINES {
        text.push_str("\n…");
    }
    match text.char_indices().nth(2000) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// The notes at the end of a result that are told in lines of their own.
fn is_told_apart(finished: &CallFinished, line: &str) -> bool {
    let note = |words: &String| {
        line.strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
            .is_some_and(|line| line == clean(words))
    };
    !finished.others.is_empty() && line.starts_with(CHANGED_BY_OTHERS) || finished.broken.iter().any(note)
}

/// The tags around foreign text in a result, which people need not see.
fn is_tag(line: &str) -> bool {
    matches!(line, "<stdout>" | "</stdout>" | "<stderr>" | "</stderr>")
}

/// A line of a diff that names its file.
fn is_name(line: &str) -> bool {
    line.starts_with("---") || line.starts_with("+++")
}
