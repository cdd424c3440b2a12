//! Commands that change files of the user in Lathe's home. A session's shell may not run those: see
//! [`Home::refuse_inside_session`](lathe_host::Home::refuse_inside_session).

use crate::args::CliCommand;

/// The command as a user types it, if it changes something outside of a session of its own; None if it does not.
/// Every new command is classified here.
pub(crate) fn changing_command(command: &CliCommand) -> Option<&'static str> {
    match command {
        CliCommand::Resume(_) => Some("lathe resume"),
        CliCommand::Fork(_) => Some("lathe fork"),
        CliCommand::Rewind(_) => Some("lathe rewind"),
        CliCommand::Undo(_) => Some("lathe undo"),
        CliCommand::Policy(args) => args.changing_command(),
        CliCommand::Serve(args) => args.changing_command(),
        CliCommand::Trust(args) => args.changing_command(),
        CliCommand::Quarantine(args) => args.changing_command(),
        CliCommand::Gc(_) => Some("lathe gc"),
        CliCommand::Auth(_) => Some("lathe auth"),
        // These have a session of their own, or none, and otherwise only read. Facts that such a session may remember
        // for the user are guarded where they are written.
        CliCommand::Run(_)
        | CliCommand::Demo(_)
        | CliCommand::Interactive(_)
        | CliCommand::Replay(_)
        | CliCommand::Tool(_)
        | CliCommand::Shell(_)
        | CliCommand::Graph(_) => None,
        CliCommand::Sessions(_)
        | CliCommand::Show(_)
        | CliCommand::Diff(_)
        | CliCommand::Watch(_)
        | CliCommand::Tools(_)
        | CliCommand::Connect(_)
        | CliCommand::Cost(_)
        | CliCommand::Config(_)
        | CliCommand::ShowConfig(_)
        | CliCommand::Models(_)
        | CliCommand::Doctor(_)
        | CliCommand::Completions { .. } => None,
    }
}
