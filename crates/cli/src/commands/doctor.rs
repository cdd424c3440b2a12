//! `doctor`: checks of everything that Lathe needs.

use clap::Args;
use lathe_host::{Check, CheckState, Host};
use lathe_plan::{Absent, ConfigPlace, GivenOptions};
use lathe_views::Say;
use serde_json::json;

use crate::args::CassetteArgs;
use crate::args::options::{OfDoctor, OptionArgs};
use crate::commands::settings;
use crate::commands::trust::TrustAttendance;
use crate::exit::Exit;
use crate::terminal::output::print_json;
use crate::terminal::{self, Paint};

#[derive(Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) options: OptionArgs<OfDoctor>,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) async fn doctor(host: &Host, args: &DoctorArgs) -> Exit {
    let folder = std::env::current_dir().unwrap_or_else(|_| std::env::temp_dir());
    let here = ConfigPlace::folder(&folder);
    let extras =
        lathe_plan::settle(host, here, &GivenOptions::default(), &Absent).map(|settled| settled.extras());
    let mut checks = host.doctor(&folder, &extras.unwrap_or_default()).await;
    match settings::settle(host, here, &args.options.0, TrustAttendance::Report) {
        // A cassette is not probed.
        Ok(_) if args.cassette.replay.is_some() => {}
        Ok(settled) => checks.extend(host.models().probe(&settled.model_request()).await),
        // The message of the error has been printed with its file and line; the other checks do not depend on it.
        Err(_) => checks.push(Check {
            name: "config",
            state: CheckState::Broken,
            detail: "the configuration cannot be used; the message above says why".to_owned(),
        }),
    }
    let broken = checks.iter().any(|check| check.state == CheckState::Broken);
    if args.json {
        let rows: Vec<_> = checks
            .iter()
            .map(|check| json!({ "name": check.name, "state": state_word(check.state), "detail": check.detail }))
            .collect();
        print_json(&json!(rows));
    } else {
        let paint = Paint::new(terminal::is_terminal());
        for check in &checks {
            let mark = match check.state {
                CheckState::Good => paint.green(&column(Say::CheckGood)),
                CheckState::Note => paint.yellow(&column(Say::CheckNote)),
                CheckState::Missing => paint.yellow(&column(Say::CheckMissing)),
                CheckState::Broken => paint.red(&column(Say::CheckBroken)),
            };
            terminal::out_line(&format!("{mark}  {:<8} {}", check.name, terminal::clean(&check.detail)));
        }
    }
    if broken { Exit::Failed } else { Exit::Done }
}

/// The state of a check as a column of a table for people.
fn column(state: Say) -> String {
    terminal::padded(state.text(terminal::language()), 7)
}

/// The state of a check as JSON names it.
fn state_word(state: CheckState) -> &'static str {
    match state {
        CheckState::Good => "ok",
        CheckState::Note => "note",
        CheckState::Missing => "missing",
        CheckState::Broken => "broken",
    }
}
