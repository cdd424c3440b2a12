//! `fork`: a new session that begins like another one.

use lathe_host::Host;
use lathe_protocol::StepNo;
use lathe_views::Tell;
use serde_json::json;

use crate::args::ForkArgs;
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

pub(crate) fn fork(host: &Host, args: &ForkArgs) -> Exit {
    let forked = host
        .archive()
        .find(Some(&args.id))
        .and_then(|id| host.archive().fork(&id, args.at.map(StepNo), None));
    match forked {
        Ok(id) if args.json => {
            print_json(&json!({ "id": id }));
            Exit::Done
        }
        Ok(id) => {
            terminal::out_line(id.as_str());
            let hint = Tell::ResumeHint { id: id.as_str() }.text(terminal::language());
            terminal::err_line(&format!("{hint} [\"...\"]"));
            Exit::Done
        }
        Err(error) => Exit::host(&error),
    }
}
