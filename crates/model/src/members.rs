//! A JSON object as its members in order, each in its original text.
//!
//! `serde_json::Map` would change `1e2` and large integers and join duplicate keys; the members that a provider sent
//! must be sent back value for value.

use std::fmt;

use lathe_protocol::Raw;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Members(pub(crate) Vec<(String, Raw)>);

impl Members {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Raw> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The number of bytes of all names and values.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.get().len()).sum()
    }

    /// A member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// Sets a member in its place, or at the end.
    pub(crate) fn set(&mut self, name: &str, value: Raw) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(crate) fn set_text(&mut self, name: &str, text: &str) {
        if let Ok(value) = Raw::from_serialize(text) {
            self.set(name, value);
        }
    }

    pub(crate) fn raw(&self) -> Option<Raw> {
        Raw::from_serialize(self).ok()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The `type` member of a raw form.
pub(crate) fn type_of(raw: &Raw) -> Option<String> {
    Members::parse(raw.get())?.text("type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_numbers_and_unknown_members_stay() {
        let text = r#"{"b":1e2,"a":12345678901234567890123,"c":{"z":1,"y":2}}"#;
        let mut members = Members::parse(text).unwrap();
        assert_eq!(members.raw().unwrap().get(), text);
        members.set("a", Raw::null());
        assert_eq!(members.raw().unwrap().get(), r#"{"b":1e2,"a":null,"c":{"z":1,"y":2}}"#);
    }
}
