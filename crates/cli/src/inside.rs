//! Commands that change what belongs to the user in Lathe's home. A session's shell may not run those: see
//! [`Home::refuse_inside_session`](lathe_host::Home::refuse_inside_session).

use crate::args::Command;

/// The change that a command makes outside of a session of its own, as a person types it; None if it makes none. Whoever adds
/// a command decides this here.
pub(crate) fn change(command: &Command) -> Option<&'static str> {
    match command {
        Command::Resume(_) => Some("lathe resume"),
        Command::Fork(_) => Some("lathe fork"),
        Command::Rewind(_) => Some("lathe rewind"),
        Command::Undo(_) => Some("lathe undo"),
        Command::Policy(args) => args.change(),
        Command::Serve(args) => args.change(),
        Command::Trust(args) => args.change(),
        Command::Quarantine(args) => args.change(),
        Command::Gc(_) => Some("lathe gc"),
        Command::Auth(_) => Some("lathe auth"),
        // These have a session of their own, or none, and read the rest. What such a session may remember for the user is
        // guarded where it is written.
        Command::Run(_)
        | Command::Demo(_)
        | Command::Interactive(_)
        | Command::Replay(_)
        | Command::Tool(_)
        | Command::Shell(_)
        | Command::Graph(_) => None,
        Command::Sessions(_)
        | Command::Show(_)
        | Command::Diff(_)
        | Command::Watch(_)
        | Command::Tools(_)
        | Command::Connect(_)
        | Command::Cost(_)
        | Command::Config(_)
        | Command::ShowConfig(_)
        | Command::Models(_)
        | Command::Doctor(_)
        | Command::Completions { .. } => None,
    }
}
