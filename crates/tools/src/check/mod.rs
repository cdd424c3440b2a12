//! Checks: commands of the user's own that look at a file after a tool changed it, so that the model hears of a type error in
//! the same step that made it.
//!
//! What was wrong before is not told again. The output for the state before an edit is taken once, before the first edit, and
//! after that the output of the last edit is that of the state before the next. A line counts as old if it was there, or if
//! only its numbers are others: an edit moves what stands below it.
//!
//! A check is the user's own act, written in the user's own file, so it needs no permission. It never fails the edit.

mod diagnostics;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::GlobMatcher;
use lathe_policy::Template;
use lathe_search::{GlobStyle, glob_matcher};
use lathe_workspace::{CaptureEnd, CaptureLimits, Ended, Fence, Pin, Spawn, capture, without_imports};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::services::Services;
use diagnostics::{Report, told};

/// Bytes of a check's output that are looked at.
const KEEP: usize = 1 << 20;

/// A command for the files of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRule {
    pub glob: String,
    /// `{file}` is each changed file, `{files}` all of them.
    pub command: String,
    /// Files it runs, as they were when a person trusted it.
    pub pins: Vec<Pin>,
}

/// The checks of a session, and what they said last.
#[derive(Default)]
pub struct Checks {
    rules: Vec<Rule>,
    time: Duration,
    /// By what was run for which files.
    known: Mutex<HashMap<Job, Report>>,
    /// Rules that cannot be run; the reason until it has been told.
    broken: Mutex<HashMap<usize, Option<String>>>,
}

struct Rule {
    glob: GlobMatcher,
    /// Whether the glob is for the name alone.
    name_only: bool,
    command: String,
    template: Template,
    pins: Vec<Pin>,
}

/// One run of a check: the rule, and the files it is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Job {
    rule: usize,
    files: Vec<PathBuf>,
}

impl Checks {
    /// Refuses an invalid glob, and a command that could run the name of a file.
    pub fn new(rules: Vec<CheckRule>, time: Duration) -> Result<Self, String> {
        let rules = rules.into_iter().map(|CheckRule { glob, command, pins }| {
            let name_only = !glob.contains('/');
            let style = GlobStyle { literal_separator: true, case_insensitive: false };
            let built = glob_matcher(glob.trim_start_matches('/'), style);
            let built = built.map_err(|error| error.to_string())?;
            let template = Template::parse(&command)?;
            Ok(Rule { glob: built, name_only, command, template, pins })
        });
        Ok(Self { rules: rules.collect::<Result<_, String>>()?, time, ..Self::default() })
    }

    /// What the checks say before files are changed, where it is not known.
    pub(crate) async fn before(&self, services: &Services, paths: &[String], cancel: &CancellationToken) {
        for job in self.jobs(services.workspace.root(), paths) {
            if self.is_broken(job.rule) || self.known.lock().contains_key(&job) {
                continue;
            }
            match self.run(services, &job, cancel).await {
                Ok(report) => drop(self.known.lock().insert(job, report)),
                Err(_) if cancel.is_cancelled() => {}
                Err(reason) => self.breaks(job.rule, reason),
            }
        }
    }

    /// What the checks say now and did not say before, in words; nothing if there is nothing.
    pub(crate) async fn after(
        &self,
        services: &Services,
        paths: &[String],
        cancel: &CancellationToken,
    ) -> String {
        let mut words = String::new();
        for job in self.jobs(services.workspace.root(), paths) {
            let Some(rule) = self.rules.get(job.rule) else { continue };
            if self.is_broken(job.rule) {
                words.push_str(&self.why_broken(job.rule, &rule.command));
                continue;
            }
            if cancel.is_cancelled() {
                continue;
            }
            match self.run(services, &job, cancel).await {
                Ok(report) => {
                    let before = self.known.lock().insert(job, report.clone());
                    words.push_str(&told(&rule.command, &before.unwrap_or_default(), &report));
                }
                Err(_) if cancel.is_cancelled() => {}
                Err(reason) => {
                    self.breaks(job.rule, reason);
                    words.push_str(&self.why_broken(job.rule, &rule.command));
                }
            }
        }
        words
    }

    fn is_broken(&self, rule: usize) -> bool {
        self.broken.lock().contains_key(&rule)
    }

    fn breaks(&self, rule: usize, reason: String) {
        self.broken.lock().insert(rule, Some(reason));
    }

    /// Said once: nobody but the user can do anything about it.
    fn why_broken(&self, rule: usize, command: &str) -> String {
        let mut broken = self.broken.lock();
        match broken.get_mut(&rule).and_then(Option::take) {
            Some(reason) => {
                format!("\n\nThe check `{command}` could not be run and is left out from now on: {reason}.")
            }
            None => String::new(),
        }
    }

    /// What is to be run when these files change.
    fn jobs(&self, root: &Path, paths: &[String]) -> Vec<Job> {
        let mut jobs = Vec::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let mut files: Vec<PathBuf> =
                paths.iter().map(PathBuf::from).filter(|path| rule.is_for(root, path)).collect();
            files.sort();
            if files.is_empty() {
                continue;
            }
            if rule.template.runs_per_file() {
                jobs.extend(files.into_iter().map(|file| Job { rule: at, files: vec![file] }));
            } else if rule.template.takes_all_files() {
                jobs.push(Job { rule: at, files });
            } else {
                jobs.push(Job { rule: at, files: Vec::new() });
            }
        }
        jobs
    }

    async fn run(
        &self,
        services: &Services,
        job: &Job,
        cancel: &CancellationToken,
    ) -> Result<Report, String> {
        let Some(rule) = self.rules.get(job.rule) else { return Ok(Report::default()) };
        let mut there = Vec::new();
        for file in &job.files {
            if services.workspace.files().stat(file).await.is_ok() {
                let inside = services.workspace.inside(file);
                let unknown = || format!("processes of this workspace have no path for {}", file.display());
                there.push(inside.ok_or_else(unknown)?.into_os_string());
            }
        }
        // Nothing can be wrong with files that are not there.
        if !job.files.is_empty() && there.is_empty() {
            return Ok(Report::default());
        }
        if let Some(changed) = rule.pins.iter().find_map(Pin::changed) {
            return Err(changed);
        }
        let fixed =
            [services.plan.shell.clone().into(), "-c".into(), rule.template.script().into(), "check".into()];
        let root = services.workspace.root();
        let cwd = services.workspace.inside(root);
        let cwd =
            cwd.ok_or_else(|| format!("processes of this workspace have no path for {}", root.display()))?;
        let what = Spawn {
            argv: fixed.into_iter().chain(there).collect(),
            cwd,
            env: without_imports(services.plan.env.clone()),
            fence: Fence::default(),
        };
        let limits = CaptureLimits { time: self.time, keep: KEEP };
        let ran = capture(&**services.workspace.processes(), what, b"", limits, cancel.cancelled()).await;
        let ran = ran.map_err(|error| error.to_string())?;
        let failed = match ran.end {
            CaptureEnd::Ended(Ended::Code(code @ (126 | 127))) => {
                let said = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
                return Err(format!("exit code {code}: {said}"));
            }
            CaptureEnd::Ended(Ended::Code(code)) => code != 0,
            CaptureEnd::Ended(Ended::Signal(signal)) => {
                return Err(format!("it was ended by signal {signal}"));
            }
            CaptureEnd::TimedOut => {
                return Err(format!("it took longer than {} seconds", self.time.as_secs()));
            }
            CaptureEnd::Stopped => return Err("cancelled".to_owned()),
        };
        let output = [ran.stdout, ran.stderr].concat();
        Ok(Report::new(failed, &services.redactor.text(&String::from_utf8_lossy(&output))))
    }
}

impl Rule {
    fn is_for(&self, root: &Path, path: &Path) -> bool {
        match path.strip_prefix(root) {
            Ok(inside) if !self.name_only => self.glob.is_match(inside),
            Ok(inside) => inside.file_name().is_some_and(|name| self.glob.is_match(name)),
            Err(_) => false,
        }
    }
}
