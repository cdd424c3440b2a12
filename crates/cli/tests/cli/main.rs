//! The real binary, as a user and a provider see it.

// Helpers of tests are not inside `#[test]` functions, where these are allowed anyway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod approvals;
mod architecture;
mod background;
mod beside;
mod broken_files;
mod checked;
mod config_links;
mod connect;
mod cut;
mod damage;
mod denials;
mod denials_behind;
mod discovered;
mod edits;
mod empty_id;
mod ends;
mod examples;
mod faults;
mod fed;
mod folders;
mod foreign_keys;
mod gate;
mod gate_lines;
mod gemini_rows;
mod git_elsewhere;
mod graph;
mod guide;
mod handles;
mod hooks_by_link;
mod hostile;
mod hostile_git;
mod hostile_layouts;
mod hostile_serve;
mod hostile_table;
mod house;
mod images;
mod inside;
mod instants;
mod interrupted;
mod keys;
mod killed_git;
mod killed_kept;
mod kills;
mod last_words;
mod layers;
mod left_for_git;
mod like_bash;
mod limits;
mod little_room;
mod live_replay;
mod live_replay_apart;
mod lost;
mod lost_git;
mod lost_parts;
mod named_lines;
mod narrowed;
mod outgrown;
mod overlaps;
mod own_links;
mod page;
mod patches;
mod patterns;
mod piped_diff;
mod places;
mod plan;
mod planners;
mod planted;
mod policy;
mod proposals;
mod prose;
mod questions;
mod readers;
mod replay;
mod resumes;
mod rewinds;
mod runs;
mod same_lines;
mod scarce;
mod secrets;
mod server;
mod shell;
mod shell_words;
mod shown_requests;
mod stops;
mod store;
mod stranger;
mod surface;
mod terminal;
mod there_and_back;
mod through_links;
mod told;
mod toolsets;
mod trae_rows;
mod trae_trust;
mod trae_user;
mod trae_ways;
mod travel;
mod truly;
mod trust;
mod undone;
mod unread_ignores;
mod user_checks;
mod waits;
mod walls;
mod walls_levels;
mod walls_names;
mod walls_projects;
mod went;
mod whose;
mod wires;
mod wording;

use std::path::Path;

use lathe_testkit::{FakeModel, FinishedLathe, Lathe, Script};
use serde_json::Value;

pub(crate) fn lathe() -> Lathe {
    Lathe::new(env!("CARGO_BIN_EXE_lathe"))
}

/// `lathe run TASK` in `dir` against `model`, allowed to change things, printing events.
pub(crate) fn run_in(dir: &Path, model: &FakeModel) -> Lathe {
    lathe()
        .in_dir(dir)
        .args(["run", "do it", "--mode", "full-auto", "--output", "stream-json"])
        .with_model(model)
}

/// Serves a script, runs it in `dir` and checks every request on the way.
pub(crate) fn play(dir: &Path, script: Script) -> FinishedLathe {
    let model = FakeModel::serving(script);
    let ran = run_in(dir, &model).run();
    assert_eq!(model.violations(), Vec::<String>::new());
    ran
}

/// The bodies of all events of a kind.
pub(crate) fn bodies(events: &[Value], kind: &str) -> Vec<Value> {
    events.iter().filter(|event| event["kind"] == kind).map(|event| event["body"].clone()).collect()
}

/// The result that the model got for each call, in the order of the calls.
pub(crate) fn results(events: &[Value]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for answered in events.iter().filter(|event| event["kind"] == "model_answered") {
        for block in answered["body"]["blocks"].as_array().unwrap() {
            let Some(id) = block["call"]["id"].as_str() else {
                continue;
            };
            let finished: Vec<&Value> = events
                .iter()
                .filter(|event| {
                    event["kind"] == "call_finished"
                        && event["call"] == id
                        && event["step"] == answered["step"]
                })
                .collect();
            assert_eq!(finished.len(), 1, "call {id} has exactly one result");
            found.push((id.to_owned(), finished[0]["body"]["text"].as_str().unwrap().to_owned()));
        }
    }
    found
}

/// The result of one call.
pub(crate) fn result(events: &[Value], id: &str) -> String {
    results(events).into_iter().find(|(known, _)| known == id).unwrap_or_else(|| panic!("no call {id}")).1
}
