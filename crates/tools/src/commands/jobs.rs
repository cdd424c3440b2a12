//! `jobs`: the processes that lines left running, their output, and their end.

use std::time::Duration;

use lathe_shell::BackgroundJob;

use super::{AgentCommands, RunningCommand, code};
use crate::view::clip;

const USAGE: &str = "jobs [list | read N | kill N]: what lines have left running in the background, what it has printed since its line ended, and its end. Bash's own `jobs -l`, `jobs -p` and `jobs %1` stay as they are.";

/// Bytes of a line that are shown in the list.
const LINE: usize = 100;

impl AgentCommands {
    pub(super) async fn jobs(&self, running: &mut RunningCommand) -> u8 {
        let services = &running.line.context.services;
        let Some(jobs) = services.jobs() else {
            return running.print("Earlier lines left nothing running.\n".to_owned()).await;
        };
        let words: Vec<String> = running.words.clone();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["-h" | "--help"] => running.print(format!("{USAGE}\n")).await,
            [] | ["list"] => {
                let all = jobs.list().await;
                let rows: String = all.iter().map(row).collect();
                let rows =
                    if rows.is_empty() { "Earlier lines left nothing running.\n".to_owned() } else { rows };
                running.print(rows).await
            }
            ["read", id] => match id.parse() {
                Ok(id) => match jobs.read(id).await {
                    Some(printed) => {
                        running.write_out(printed).await;
                        0
                    }
                    None => running.complain(&format!("there is no job {id}; see: jobs"), code::FAILED).await,
                },
                Err(_) => {
                    running.complain(&format!("{id:?} is no number of a job; see: jobs"), code::USAGE).await
                }
            },
            ["kill", id] => match id.parse() {
                Ok(id) if jobs.kill(id).await => running.print(format!("Job {id} was ended.\n")).await,
                Ok(id) => running.complain(&format!("no job {id} is running; see: jobs"), code::FAILED).await,
                Err(_) => {
                    running.complain(&format!("{id:?} is no number of a job; see: jobs"), code::USAGE).await
                }
            },
            _ => running.complain(&format!("Unexpected argument\nUsage: {USAGE}"), code::USAGE).await,
        }
    }
}

fn row(job: &BackgroundJob) -> String {
    let state = match job.pids.as_slice() {
        [] => "ended".to_owned(),
        [pid] => format!("running (pid {pid})"),
        pids => format!("running ({} processes)", pids.len()),
    };
    let line = job.line.lines().next().unwrap_or_default();
    let cut = clip(line, LINE);
    let more = if cut.len() < job.line.trim_end().len() { "..." } else { "" };
    format!("{}  {state}  {}  {} bytes printed  {cut}{more}\n", job.id, age(job.age), job.printed)
}

fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => format!("{}m{:02}s", seconds / 60, seconds % 60),
    }
}
