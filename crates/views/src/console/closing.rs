//! The first lines of a session and the last ones of a run.

use lathe_protocol::{Budget, Mode, Sandbox, SessionOptions, Usage, clean, dollars, grouped, plain_address};
use serde::Serialize;

use super::styled::{Style, Styled, name_text};
use crate::cost::{CacheCause, CacheMeter};
use crate::messages::{Language, Noun, Say, Tell};

/// The source of a session's mode, for its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeSource {
    /// Set by the user, or the usual one.
    Settings,
    /// An order to end with a patch, without a mode.
    MustPatch,
    /// A user is there to ask.
    Asked,
}

/// One changed file of a run, from its content before the run to its content now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    pub path: String,
    pub diff: String,
    pub added: usize,
    pub removed: usize,
    /// It was removed, and only the quarantine has it: the entry.
    pub kept: Option<String>,
}

/// A file that Lathe set aside because git would have run it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AsideFile {
    /// Its own name, where git would have looked for it.
    pub path: String,
    /// The name it has now. None if it could not be moved and is still in place.
    pub set_aside_as: Option<String>,
    pub reason: &'static str,
    pub advice: &'static str,
}

/// Outcome of a run, for its last lines.
#[derive(Debug, Clone)]
pub struct Closing<'a> {
    pub session: &'a str,
    /// Another process still works on it.
    pub is_running: bool,
    pub has_task: bool,
    pub ended_well: bool,
    pub steps: u32,
    pub calls: u32,
    pub usage: Usage,
    pub seconds: f64,
    pub denials: usize,
    /// The number of those that another mode would have allowed.
    pub denied_by_mode: u32,
    /// Questions that the user answered with no.
    pub refused: u32,
    pub files: &'a [FileDiff],
    pub aside: &'a [AsideFile],
}

/// The mode and its reason, unless the user set it or expects it.
pub fn unusual_mode(options: &SessionOptions, from: ModeSource, language: Language) -> Option<String> {
    let say = |say: Say| say.text(language);
    match from {
        ModeSource::Settings | ModeSource::Asked => None,
        ModeSource::MustPatch => {
            Some(format!("{} {}{}", say(Say::Mode), options.mode.as_str(), say(Say::ModeOfMustPatch)))
        }
    }
}

/// The first line: the model, the mode, the sandbox and the limits of the run. The host is named if it is not the
/// provider's own, the folder if it is not the current one.
pub fn opening(
    options: &SessionOptions,
    folder: Option<&str>,
    from: ModeSource,
    language: Language,
) -> Styled {
    let say = |say: Say| say.text(language);
    let mode = unusual_mode(options, from, language)
        .unwrap_or_else(|| format!("{} {}", say(Say::Mode), options.mode.as_str()));
    let sandbox = match options.sandbox {
        Sandbox::Off => say(Say::SandboxOff).to_owned(),
        Sandbox::Workspace | Sandbox::ReadOnly => {
            Tell::SandboxLevel { name: options.sandbox.as_str(), level: options.walls.level }.text(language)
        }
    };
    let line = format!(
        "lathe {} · {} {} ({}{}) · {mode} · {sandbox} · {} {}{}{}",
        env!("CARGO_PKG_VERSION"),
        say(Say::Model),
        clean(&options.model.model),
        clean(&options.model.provider),
        clean(&host_of(options)),
        say(Say::AtMost),
        Noun::Step.count(options.limits.steps(), language),
        budget_words(&options.limits.budget, language),
        folder.map(|folder| format!(" · {} {}", say(Say::Folder), clean(folder))).unwrap_or_default(),
    );
    let hint = match options.mode {
        // No question will show it, so it is shown before the first line runs.
        Mode::FullAuto if options.model.provider != "cassette" => Some((Style::Dim, say(Say::NotBack))),
        _ if from == ModeSource::Asked => None,
        Mode::FullAuto | Mode::Plan => None,
        Mode::Default | Mode::AutoEdit => Some((Style::Yellow, say(Say::ModeHint))),
    };
    let first = Styled::of(Style::Dim, line).and("\n").then(weaker_walls(options, language));
    match hint {
        Some((style, hint)) => first.styled(style, hint).and("\n"),
        None => first,
    }
}

/// The reasons why the walls are weaker than they could be, and the services that are reached through them.
fn weaker_walls(options: &SessionOptions, language: Language) -> Styled {
    let mut out = Styled::default();
    if !options.walls.missing.is_empty() {
        let reasons = clean(&options.walls.missing.join("; "));
        out = out.styled(Style::Yellow, Tell::WeakerWalls { reasons: &reasons }.text(language)).and("\n");
    }
    if !options.walls.reachable.is_empty() {
        let names = clean(&options.walls.reachable.join(", "));
        out = out.styled(Style::Yellow, Tell::ReachableServices { names: &names }.text(language)).and("\n");
    }
    out
}

/// The host of a model that is not at its provider's own address, as it stands after the provider.
fn host_of(options: &SessionOptions) -> String {
    let Some(url) = options.model.base_url.as_deref().map(plain_address) else { return String::new() };
    let host = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    format!(" @ {}", host.split('/').next().unwrap_or_default())
}

/// The caps of a run, for its first line.
fn budget_words(budget: &Budget, language: Language) -> String {
    let mut words = String::new();
    if let Some(micro) = budget.cost {
        words.push_str(&format!(", {}", dollars(micro)));
    }
    if let Some(tokens) = budget.tokens {
        words.push_str(&format!(", {}", Noun::Token.count(tokens, language)));
    }
    if let Some(seconds) = budget.seconds {
        words.push_str(&format!(", {seconds} s"));
    }
    words
}

/// The share of the input that came from the provider's cache, if the provider reports it.
pub fn cached_share(usage: &Usage, language: Language) -> String {
    match usage.cache_read_input_tokens {
        0 => String::new(),
        read => {
            let percent = read.saturating_mul(100) / usage.input_tokens.max(1);
            Tell::CachedShare { percent }.text(language)
        }
    }
}

/// Lines about the use of the provider's cache, and what broke it.
pub fn cache_lines(meter: &CacheMeter, language: Language) -> Styled {
    let Some(percent) = meter.percent() else { return Styled::default() };
    let head = Tell::CacheUse { percent, breaks: meter.breaks.len() }.text(language);
    let mut out = format!("{head}\n");
    for broken in &meter.breaks {
        let (step, cause) = (broken.step, cache_cause(broken.cause, language));
        out.push_str(&format!("  {}\n", Tell::Summary { step, text: &cause }.text(language)));
    }
    Styled::of(Style::Dim, out)
}

/// The reason for which the provider's cache broke.
fn cache_cause(cause: CacheCause, language: Language) -> String {
    let say = match cause {
        CacheCause::Time { seconds } => return Tell::CacheTime { minutes: seconds / 60 }.text(language),
        CacheCause::OtherModel => Say::CacheOtherModel,
        CacheCause::Epoch => Say::CacheOptions,
        CacheCause::Rewound => Say::CacheRewound,
        CacheCause::Provider => Say::CacheProvider,
    };
    say.text(language).to_owned()
}

impl Closing<'_> {
    /// The last lines of a run: its changes, its refusals, its use of tokens and time, and the commands that show
    /// more.
    pub fn text(&self, language: Language) -> Styled {
        let say = |say: Say| say.text(language);
        let mut out = Styled::new("\n").then(self.changed(language));
        if self.denials > 0 && !self.is_running {
            let what = match self.denials {
                1 => say(Say::DeniedCall).to_owned(),
                count => Tell::DeniedCalls { count }.text(language),
            };
            let hint = if self.denied_by_mode > 0 { say(Say::DeniedByMode) } else { "" };
            out = out.and("\n").styled(Style::Yellow, format!("{what}{hint}")).and("\n");
        }
        out = out.then(self.set_aside(language));
        if self.refused > 0 && !self.is_running {
            let line = match self.refused {
                1 => say(Say::RefusedOnce).to_owned(),
                count => Tell::Refused { count }.text(language),
            };
            out = out.and("\n").styled(Style::Yellow, line).and("\n");
        }
        let totals = Tell::RunTotals {
            steps: &Noun::Step.count(self.steps, language),
            input: &grouped(self.usage.input_tokens),
            cached: &cached_share(&self.usage, language),
            output: &grouped(self.usage.output_tokens),
            seconds: self.seconds,
        };
        let line = totals.text(language);
        out.and("\n").styled(Style::Dim, line).and("\n").styled(Style::Dim, self.commands(language)).and("\n")
    }

    fn changed(&self, language: Language) -> Styled {
        let say = |say: Say| say.text(language);
        if self.files.is_empty() {
            let never = !self.is_running && self.has_task && self.steps == 0 && self.calls == 0;
            let words = if never { Say::NothingBegun } else { Say::NothingChanged };
            return Styled::of(Style::Dim, say(words)).and("\n");
        }
        let head = Styled::of(Style::Bold, say(Say::Changed)).and("\n");
        let width = self.files.iter().map(|file| name_text(&file.path).chars().count()).max().unwrap_or(0);
        self.files.iter().fold(head, |out, file| {
            let out = out.and(format!("  {:<width$}  ", name_text(&file.path)));
            if file.kept.is_some() {
                return out.styled(Style::Red, say(Say::InQuarantine)).and("\n");
            }
            let (added, removed) = (format!("+{}", file.added), format!("-{}", file.removed));
            out.styled(Style::Green, added).and(" ").styled(Style::Red, removed).and("\n")
        })
    }

    /// Files that were set aside: each with its name now and what to do.
    fn set_aside(&self, language: Language) -> Styled {
        if self.aside.is_empty() {
            return Styled::default();
        }
        let head =
            Styled::new("\n").styled(Style::Yellow, Say::SetAside.label(language).trim_end()).and("\n");
        self.aside.iter().fold(head, |out, file| {
            let now = file.set_aside_as.as_ref().map_or_else(String::new, |name| {
                format!(" ({}{})", Say::SetAsideNow.label(language), name_text(name))
            });
            out.and(format!("  {}{now}: {}\n", name_text(&file.path), file.advice))
        })
    }

    /// Commands that show the session and resume it.
    fn commands(&self, language: Language) -> String {
        let id = self.session;
        if self.is_running {
            return Tell::StillRunning { id }.text(language);
        }
        let again =
            format!("{} {id} · {}", Say::Session.text(language), Tell::ShowHint { id }.text(language));
        match self.ended_well {
            true => again,
            false => format!("{again} · {}", Tell::ResumeHint { id }.text(language)),
        }
    }
}
