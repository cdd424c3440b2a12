//! Advice for a user of the command line about an error of the host.

use lathe_host::{HostError, KeySource};

/// The text of an error, followed by what to do about it.
pub(crate) fn with_advice(error: &HostError) -> String {
    format!("{error}{}", advice(error))
}

/// The advice after the text of an error, with the punctuation that joins them. Every kind of error is named, so that
/// a new kind needs a decision here.
fn advice(error: &HostError) -> String {
    match error {
        HostError::NoKey { provider, variable } => {
            format!(": set {variable}, store one with `lathe auth login {provider}`, or give --api-key")
        }
        HostError::UnknownProvider(_) => {
            "; give --model-base-url for any server that speaks OpenAI's Chat Completions".to_owned()
        }
        HostError::OtherAddress { address, provider, source_of_key } => format!(
            ". {} To use another key there, name the address too: --model-base-url {address} --api-key KEY",
            key_advice(source_of_key, provider)
        ),
        HostError::NoPrice { model, file } => format!(
            ": put it into {}, as {{\"{model}\": {{\"input\": 3, \"output\": 15}}}} in US dollars per million tokens, or give --max-tokens instead of --max-cost",
            file.display()
        ),
        HostError::NoSandbox(_) => {
            "; `lathe doctor` shows what is missing, and `--sandbox off` works without walls".to_owned()
        }
        HostError::NoModelName => ": give --model".to_owned(),
        HostError::Home { .. } => ". Set LATHE_HOME to another folder.".to_owned(),
        HostError::NoSessions => ": give a task with `lathe run`".to_owned(),
        HostError::NoSessionHere(_) => ": give its id (see `lathe sessions`)".to_owned(),
        HostError::NoSuchSession(_) => ": see `lathe sessions`".to_owned(),
        HostError::EmptyId => ": leave it out, or see `lathe sessions`".to_owned(),
        HostError::NoSuchEntry(_) => "; `lathe quarantine list` shows them".to_owned(),
        HostError::Trust { .. } => "; `lathe trust remove` starts over".to_owned(),
        HostError::NotTrusted(_) => "; `lathe trust list` shows what is".to_owned(),
        HostError::Secrets { .. } => "; see `[secrets]` in the configuration".to_owned(),
        HostError::InsideSession { .. } => {
            ". Run it in a terminal of your own; a test may set LATHE_HOME to a folder of its own".to_owned()
        }
        HostError::Crashed(_) => "; resume it with `lathe resume`".to_owned(),
        HostError::NoModel
        | HostError::BadModel(_)
        | HostError::BadKey { .. }
        | HostError::Folder { .. }
        | HostError::Graph(_)
        | HostError::OtherToolset { .. }
        | HostError::Cassette(_)
        | HostError::IdInUse(_)
        | HostError::NoSuchRun { .. }
        | HostError::ManySessions { .. }
        | HostError::NoSuchTool { .. }
        | HostError::ToolArguments(_)
        | HostError::NotModifiable(_)
        | HostError::Discovery(_)
        | HostError::Field { .. }
        | HostError::Documents(_)
        | HostError::Shell { .. }
        | HostError::Policy(_)
        | HostError::Check(_)
        | HostError::Journal(_)
        | HostError::Agent(_)
        | HostError::NoSuchStep { .. }
        | HostError::BaseCommit { .. }
        | HostError::Prices(_)
        | HostError::Patch(_)
        | HostError::Rewind(_)
        | HostError::Restore { .. }
        | HostError::NoSpace(_)
        | HostError::NothingToUndo
        | HostError::File { .. }
        | HostError::Git(_)
        | HostError::Review(_)
        | HostError::Replay(_)
        | HostError::Demo(_) => String::new(),
    }
}

/// The way in which a session gets its key again.
fn key_advice(source: &KeySource, provider: &str) -> String {
    match source {
        KeySource::Unknown => "The session does not say where its key came from.".to_owned(),
        KeySource::ProvidersVariable(variable) => format!(
            "That key was in the variable {variable}, which belongs to a provider: name the provider with --provider, or give the key with --api-key or LATHE_API_KEY."
        ),
        KeySource::Variable(variable) => {
            format!("That key was in the variable {variable}: set it again, or give it with --api-key.")
        }
        KeySource::Store => format!(
            "That key was stored: store it again with `lathe auth login {provider}`, or give it with --api-key."
        ),
        KeySource::Given => {
            "That key came from a flag or a configuration file, and it is not stored: give it again with --api-key."
                .to_owned()
        }
        KeySource::Named(source) => format!("Where its key came from: {source}."),
    }
}
