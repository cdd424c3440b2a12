//! Commands that change what belongs to the user in Lathe's home. A session's shell may not run those: see
//! [`Home::refuse_inside_session`](lathe_host::Home::refuse_inside_session).

use crate::args::CliCommand;

/// The change that a command makes outside of a session of its own, as a person types it; None if it makes none. Whoever adds
/// a command decides this here.
pub(crate) fn change(command: &CliCommand) -> Option<&'static str> {
    match command {
        CliCommand::Resume(_) => Some("lathe resume"),
        CliCommand::Fork(_) => Some("lathe fork"),
        CliCommand::Rewind(_) => Some("lathe rewind"),
        CliCommand::Undo(_) => Some("lathe undo"),
        CliCommand::Policy(args) => args.change(),
        CliCommand::Serve(args) => args.change(),
        CliCommand::Trust(args) => args.change(),
        CliCommand::Quarantine(args) => args.change(),
        CliCommand::Gc(_) => Some("lathe gc"),
        CliCommand::Auth(_) => Some("lathe auth"),
        // These have a session of their own, or none, and read the rest. What such a session may remember for the user is
        // guarded where it is written.
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
