//! Processes that lines have left running.
//!
//! The supervisor knows the processes, so it is queried. It forwards their output after the end of their line, which
//! is kept here, head and tail. A line without remaining processes is not a job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::{Spool, wire};

/// The number of bytes kept of a job's output.
const KEEP: u64 = 256 * 1024;
/// The maximum number of ended jobs; beyond it the oldest are forgotten.
const ENDED_MAX: usize = 64;
const LINE_MAX: usize = 4096;
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// The time between TERM and KILL.
const GRACE_MS: u32 = 1000;
const KILL_LIMIT: Duration = Duration::from_secs(4);
const KILL_TICK: Duration = Duration::from_millis(10);

/// The processes that one line left in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundJob {
    /// The number of the line, which is the number of the job.
    pub id: u64,
    /// The line's text.
    pub line: String,
    /// The processes that are alive. Empty when all have ended.
    pub pids: Vec<u32>,
    pub age: Duration,
    /// Bytes printed after the line's end.
    pub printed: u64,
}

/// The jobs of one shell. It does not keep the shell alive: after its end all of them have ended.
#[derive(Clone, Default)]
pub struct Jobs {
    table: Arc<Mutex<Table>>,
    answered: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct Table {
    supervisor: Option<mpsc::WeakSender<Vec<u8>>>,
    asked: u64,
    /// The line that is running, or ran last.
    line: Option<(u64, String, Instant)>,
    jobs: BTreeMap<u64, Record>,
}

struct Record {
    line: String,
    began: Instant,
    pids: Vec<u32>,
    output: Spool,
}

impl Jobs {
    /// All known jobs, the oldest first.
    pub async fn list(&self) -> Vec<BackgroundJob> {
        self.ask().await;
        let table = self.table.lock();
        let job = |(id, record): (&u64, &Record)| BackgroundJob {
            id: *id,
            line: record.line.clone(),
            pids: record.pids.clone(),
            age: record.began.elapsed(),
            printed: record.output.total(),
        };
        table.jobs.iter().map(job).collect()
    }

    /// The output of a job since its line ended, stdout and stderr interleaved as they came. A line in brackets marks
    /// omitted bytes.
    pub async fn read(&self, id: u64) -> Option<Vec<u8>> {
        self.ask().await;
        let table = self.table.lock();
        let output = &table.jobs.get(&id)?.output;
        // A temporary file that cannot be read counts as missing.
        let kept = output.head_tail(KEEP as usize).ok()?;
        if kept.omitted == 0 {
            return Some([kept.head, kept.tail].concat());
        }
        let mark = format!("\n[{} bytes left out]\n", kept.omitted);
        Some([kept.head, mark.into_bytes(), kept.tail].concat())
    }

    /// Ends all processes of a job: with TERM first, then with KILL. Returns false if there was none, or not all are
    /// gone.
    pub async fn kill(&self, id: u64) -> bool {
        if !self.is_alive(id).await || !self.send(wire::end_job(id, GRACE_MS)).await {
            return false;
        }
        let gone = async {
            while self.is_alive(id).await {
                sleep(KILL_TICK).await;
            }
        };
        timeout(KILL_LIMIT, gone).await.is_ok()
    }

    /// The line that left one of these processes in the background. None for those of the running line.
    pub(crate) async fn line_of(&self, processes: &[i32]) -> Option<u64> {
        let find = |table: &Table| {
            let holds = |record: &Record| {
                record.pids.iter().any(|pid| processes.iter().any(|one| u32::try_from(*one) == Ok(*pid)))
            };
            table.jobs.iter().find(|(_, record)| holds(record)).map(|(id, _)| *id)
        };
        let known = find(&self.table.lock());
        known?;
        // The number of an ended process may belong to another one by now.
        self.ask().await;
        let now = find(&self.table.lock());
        now.filter(|now| Some(*now) == known)
    }

    /// Forgets all jobs, because a fresh shell has none.
    pub(crate) fn clear(&self) {
        self.table.lock().jobs.clear();
    }

    async fn is_alive(&self, id: u64) -> bool {
        self.ask().await;
        self.table.lock().jobs.get(&id).is_some_and(|record| !record.pids.is_empty())
    }

    /// Updates the table. Without a supervisor no job is alive.
    async fn ask(&self) {
        let query = {
            let mut table = self.table.lock();
            table.asked += 1;
            table.asked
        };
        let mut answered = self.answered.subscribe();
        if !self.send(wire::jobs(query)).await {
            return self.table.lock().update(Vec::new());
        }
        // If it does not reply, its last reply stays valid.
        let _ = timeout(ANSWER_LIMIT, answered.wait_for(|answered| *answered >= query)).await;
    }

    async fn send(&self, frame: Vec<u8>) -> bool {
        let sender = self.table.lock().supervisor.as_ref().and_then(mpsc::WeakSender::upgrade);
        let Some(sender) = sender else { return false };
        matches!(timeout(ANSWER_LIMIT, sender.send(frame)).await, Ok(Ok(())))
    }

    pub(crate) fn supervised_by(&self, supervisor: mpsc::WeakSender<Vec<u8>>) {
        self.table.lock().supervisor = Some(supervisor);
    }

    pub(crate) fn line_begins(&self, id: u64, text: &[u8]) {
        let text = String::from_utf8_lossy(&text[..text.len().min(LINE_MAX)]).into_owned();
        self.table.lock().line = Some((id, text, Instant::now()));
    }

    /// Handles the supervisor's list of processes that are alive.
    pub(crate) fn update_from_supervisor(&self, query: u64, jobs: Vec<(u64, Vec<u32>)>) {
        self.table.lock().update(jobs);
        self.answered.send_if_modified(|answered| {
            let is_new = query > *answered;
            *answered = query.max(*answered);
            is_new
        });
    }

    /// Handles output of a job. Output before the job is known is not kept.
    pub(crate) fn printed(&self, id: u64, bytes: &[u8]) {
        if let Some(record) = self.table.lock().jobs.get_mut(&id) {
            record.output.push(bytes);
        }
    }
}

impl Table {
    fn update(&mut self, jobs: Vec<(u64, Vec<u32>)>) {
        self.jobs.values_mut().for_each(|record| record.pids.clear());
        for (id, pids) in jobs {
            let line = &self.line;
            let record = self.jobs.entry(id).or_insert_with(|| {
                let (line, began) = match line {
                    Some((of, text, began)) if *of == id => (text.clone(), *began),
                    _ => (String::new(), Instant::now()),
                };
                Record { line, began, pids: Vec::new(), output: Spool::new(KEEP) }
            });
            record.pids = pids;
        }
        let ended = self.jobs.iter().filter(|(_, record)| record.pids.is_empty()).map(|(id, _)| *id);
        let ended: Vec<u64> = ended.collect();
        for id in ended.iter().take(ended.len().saturating_sub(ENDED_MAX)) {
            self.jobs.remove(id);
        }
    }
}
