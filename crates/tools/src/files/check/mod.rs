//! Checks: the user's own commands that inspect a file after a tool changed it, so that the model learns of a type
//! error in the same step that made it.
//!
//! Whatever was wrong before is not reported again. The output for the state before an edit is taken once,
//! before the first edit; after that, the output after one edit serves as the output before the next. A line counts
//! as old if it was there before, or if only its numbers differ: an edit moves the lines below it.
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
use diagnostics::{CheckReport, new_lines_text};

/// Bytes of a check's output that are kept and compared.
const KEEP: usize = 1 << 20;

/// A command for the files of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRule {
    pub glob: String,
    /// `{file}` stands for each changed file, `{files}` for all of them.
    pub command: String,
    /// Files that it runs, as they were when the user trusted it.
    pub pins: Vec<Pin>,
}

/// The checks of a session, and their last output.
#[derive(Default)]
pub struct Checks {
    rules: Vec<CompiledRule>,
    time: Duration,
    /// The last output, by the rule and the files it ran for.
    known: Mutex<HashMap<CheckRun, CheckReport>>,
    /// Rules that cannot be run, with the reason until it has been reported.
    broken: Mutex<HashMap<usize, Option<String>>>,
}

struct CompiledRule {
    glob: GlobMatcher,
    /// True if the glob is matched against the name alone.
    name_only: bool,
    command: String,
    template: Template,
    pins: Vec<Pin>,
}

/// One run of a check: the rule, and its files.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CheckRun {
    rule: usize,
    files: Vec<PathBuf>,
}

impl Checks {
    /// Makes the checks. Refuses an invalid glob, and a command that could run the name of a file.
    pub fn new(rules: Vec<CheckRule>, time: Duration) -> Result<Self, String> {
        let rules = rules.into_iter().map(|CheckRule { glob, command, pins }| {
            let name_only = !glob.contains('/');
            let style = GlobStyle { literal_separator: true, case_insensitive: false };
            let built = glob_matcher(glob.trim_start_matches('/'), style);
            let built = built.map_err(|error| error.to_string())?;
            let template = Template::parse(&command)?;
            Ok(CompiledRule { glob: built, name_only, command, template, pins })
        });
        Ok(Self { rules: rules.collect::<Result<_, String>>()?, time, ..Self::default() })
    }

    /// Runs the checks before files are changed, where their output is not known.
    pub(crate) async fn run_before(&self, services: &Services, paths: &[String], cancel: &CancellationToken) {
        for job in self.runs_for(services.workspace.root(), paths) {
            if self.is_broken(job.rule) || self.known.lock().contains_key(&job) {
                continue;
            }
            match self.run(services, &job, cancel).await {
                Ok(report) => drop(self.known.lock().insert(job, report)),
                Err(_) if cancel.is_cancelled() => {}
                Err(reason) => self.mark_broken(job.rule, reason),
            }
        }
    }

    /// The text on what the checks print now and did not print before; empty if there is nothing.
    pub(crate) async fn run_after(
        &self,
        services: &Services,
        paths: &[String],
        cancel: &CancellationToken,
    ) -> String {
        let mut words = String::new();
        for job in self.runs_for(services.workspace.root(), paths) {
            let Some(rule) = self.rules.get(job.rule) else { continue };
            if self.is_broken(job.rule) {
                words.push_str(&self.take_broken_reason(job.rule, &rule.command));
                continue;
            }
            if cancel.is_cancelled() {
                continue;
            }
            match self.run(services, &job, cancel).await {
                Ok(report) => {
                    let before = self.known.lock().insert(job, report.clone());
                    words.push_str(&new_lines_text(&rule.command, &before.unwrap_or_default(), &report));
                }
                Err(_) if cancel.is_cancelled() => {}
                Err(reason) => {
                    self.mark_broken(job.rule, reason);
                    words.push_str(&self.take_broken_reason(job.rule, &rule.command));
                }
            }
        }
        words
    }

    fn is_broken(&self, rule: usize) -> bool {
        self.broken.lock().contains_key(&rule)
    }

    fn mark_broken(&self, rule: usize, reason: String) {
        self.broken.lock().insert(rule, Some(reason));
    }

    /// The reason why a rule cannot be run. It is given once: only the user can do anything about it.
    fn take_broken_reason(&self, rule: usize, command: &str) -> String {
        let mut broken = self.broken.lock();
        match broken.get_mut(&rule).and_then(Option::take) {
            Some(reason) => {
                format!("\n\nThe check `{command}` could not be run and is left out from now on: {reason}.")
            }
            None => String::new(),
        }
    }

    /// The runs that are due when these files change.
    fn runs_for(&self, root: &Path, paths: &[String]) -> Vec<CheckRun> {
        let mut jobs = Vec::new();
        for (at, rule) in self.rules.iter().enumerate() {
            let mut files: Vec<PathBuf> =
                paths.iter().map(PathBuf::from).filter(|path| rule.is_for(root, path)).collect();
            files.sort();
            if files.is_empty() {
                continue;
            }
            if rule.template.runs_per_file() {
                jobs.extend(files.into_iter().map(|file| CheckRun { rule: at, files: vec![file] }));
            } else if rule.template.takes_all_files() {
                jobs.push(CheckRun { rule: at, files });
            } else {
                jobs.push(CheckRun { rule: at, files: Vec::new() });
            }
        }
        jobs
    }

    async fn run(
        &self,
        services: &Services,
        job: &CheckRun,
        cancel: &CancellationToken,
    ) -> Result<CheckReport, String> {
        let Some(rule) = self.rules.get(job.rule) else { return Ok(CheckReport::default()) };
        let mut there = Vec::new();
        for file in &job.files {
            if services.workspace.files().stat(file).await.is_ok() {
                let inside = services.workspace.inside(file);
                let unknown = || format!("processes of this workspace have no path for {}", file.display());
                there.push(inside.ok_or_else(unknown)?.into_os_string());
            }
        }
        // Files that do not exist cannot be wrong.
        if !job.files.is_empty() && there.is_empty() {
            return Ok(CheckReport::default());
        }
        if let Some(changed) = rule.pins.iter().find_map(Pin::why_changed) {
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
            shown: Vec::new(),
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
        Ok(CheckReport::new(failed, &services.redactor.redact_text(&String::from_utf8_lossy(&output))))
    }
}

impl CompiledRule {
    fn is_for(&self, root: &Path, path: &Path) -> bool {
        match path.strip_prefix(root) {
            Ok(inside) if !self.name_only => self.glob.is_match(inside),
            Ok(inside) => inside.file_name().is_some_and(|name| self.glob.is_match(name)),
            Err(_) => false,
        }
    }
}
