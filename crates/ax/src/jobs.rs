//! Processes that lines have left running, by the line that started them.
//!
//! A process belongs to the line at whose end it was new, and so do its descendants. One that has lost its parents in
//! the meantime, and was not seen before, is assigned by the output that it holds. If it holds none, it belongs to
//! the running line or, between lines, to the last one that left anything.

use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::fs;
use std::time::{Duration, Instant};

use crate::line::Outputs;
use crate::private_folder::PrivateFolder;
use crate::stop::GIVE_UP;
use crate::system::{SIGCONT, SIGKILL, SIGTERM, send};
use crate::tree::{Live, Process};

pub struct JobProcesses {
    pub id: u64,
    /// The number of its outputs, until another line uses them.
    outputs: Option<u32>,
    /// Parents come before their children.
    pub processes: Vec<Process>,
    ending: Option<Ending>,
}

struct Ending {
    kill_at: Instant,
    told: HashSet<Process>,
}

#[derive(Default)]
pub struct JobTable {
    jobs: Vec<JobProcesses>,
}

impl JobTable {
    pub fn list(&self) -> &[JobProcesses] {
        &self.jobs
    }

    pub fn clear(&mut self) {
        self.jobs.clear();
    }

    /// Updates the jobs with the live processes, and returns those that belong to no job.
    pub fn update(&mut self, alive: &[Live], folder: &PrivateFolder, has_line: bool) -> Vec<Process> {
        if self.jobs.is_empty() {
            return alive.iter().map(|live| live.process).collect();
        }
        let known: HashMap<Process, usize> = self
            .jobs
            .iter()
            .enumerate()
            .flat_map(|(index, job)| job.processes.iter().map(move |process| (*process, index)))
            .collect();
        self.jobs.iter_mut().for_each(|job| job.processes.clear());
        let mut owners: HashMap<c_int, usize> = HashMap::new();
        let mut unknown = Vec::new();
        for live in alive {
            let owner = known.get(&live.process).or_else(|| owners.get(&live.parent)).copied();
            match owner.or_else(|| self.owner_of_orphan(live, folder, has_line)) {
                Some(owner) => {
                    owners.insert(live.process.0, owner);
                    self.jobs[owner].processes.push(live.process);
                }
                None => unknown.push(live.process),
            }
        }
        self.jobs.retain(|job| !job.processes.is_empty());
        unknown
    }

    fn owner_of_orphan(&self, live: &Live, folder: &PrivateFolder, has_line: bool) -> Option<usize> {
        if live.parent != std::process::id() as c_int {
            return None;
        }
        let held = [1, 2].map(|fd| fs::read_link(format!("/proc/{}/fd/{fd}", live.process.0)).ok());
        let holds = |number: u32| {
            let paths = Outputs::names(number).map(|name| folder.path().join(name));
            held.iter().flatten().any(|path| paths.contains(path))
        };
        let last = self.jobs.len().checked_sub(1).filter(|_| !has_line);
        self.jobs.iter().position(|job| job.outputs.is_some_and(holds)).or(last)
    }

    /// Adds the processes that remain after the end of a line.
    pub fn add(&mut self, id: u64, outputs: u32, processes: Vec<Process>) {
        if !processes.is_empty() {
            self.jobs.push(JobProcesses { id, outputs: Some(outputs), processes, ending: None });
        }
    }

    /// Forgets outputs that no process holds any more.
    pub fn forget_outputs(&mut self, number: u32) {
        let of = |job: &&mut JobProcesses| job.outputs == Some(number);
        self.jobs.iter_mut().filter(of).for_each(|job| job.outputs = None);
    }

    pub fn end(&mut self, id: u64, grace: Duration) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.id == id) {
            job.ending = Some(Ending { kill_at: Instant::now() + grace, told: HashSet::new() });
        }
    }

    pub fn is_any_ending(&self) -> bool {
        self.jobs.iter().any(|job| job.ending.is_some())
    }

    /// Sends TERM to the processes of ending jobs, and KILL to those that have not ended in time.
    pub fn signal_ending(&mut self) {
        let now = Instant::now();
        for job in &mut self.jobs {
            let Some(ending) = &mut job.ending else { continue };
            if now >= ending.kill_at {
                job.processes.iter().for_each(|process| send(process.0, SIGKILL));
            } else {
                let new: Vec<_> =
                    job.processes.iter().filter(|process| ending.told.insert(**process)).collect();
                new.iter().for_each(|process| send(process.0, SIGTERM));
                new.iter().for_each(|process| send(process.0, SIGCONT));
            }
            if now >= ending.kill_at + GIVE_UP {
                job.ending = None;
            }
        }
    }
}
