//! Identifiers. Each id is its own type, so that a step cannot be passed for a sequence number.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, random_number};

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub $int);

        impl $name {
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

text_id! {
    /// A session: one journal.
    SessionId;
    /// The agent that acts in a session. A sub-agent has a session of its own.
    AgentId;
    /// A tool call, as the model named it; unique within one answer.
    CallId;
    /// A command, named by the client that sent it.
    CommandId;
}

number_id! {
    /// Number of an event in its journal. It never decreases. The first event is 1.
    Seq(u64);
    /// One model answer and its consequences. Counted through the whole session from 1.
    StepNo(u32);
    /// One task being worked on. Counted through the whole session from 1; 0 is before the first.
    RunNo(u32);
}

impl CommandId {
    /// This id together with the digest of what it means, so that the same id with another meaning is another id.
    pub fn bound_to(&self, to: &Digest) -> Self {
        Self::new(format!("{self}~{to}"))
    }

    /// The id as its client sent it.
    pub fn as_sent(&self) -> &str {
        self.parts().map_or(self.as_str(), |(spoken, _)| spoken)
    }

    /// The digest that this id is bound to.
    pub fn binding(&self) -> Option<Digest> {
        self.parts().map(|(_, binding)| binding)
    }

    fn parts(&self) -> Option<(&str, Digest)> {
        let (spoken, binding) = self.as_str().rsplit_once('~')?;
        Some((spoken, Digest::parse(binding)?))
    }
}

impl AgentId {
    /// The agent a session begins with.
    pub fn main() -> Self {
        Self::new("main")
    }
}
impl CommandId {
    /// An id that no other command has.
    pub fn fresh() -> Self {
        Self(format!("{:016x}", random_number()))
    }
}
