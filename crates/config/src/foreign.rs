//! Endpoints of a Trae file that was not named and that the user trusts.
//!
//! The user trusts such a file to say which model is asked and where. Trust does not hand it a key: a key is sent to
//! an address of the file only if it stands in the same file, or in the `.env` next to it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::merge::Layer;
use crate::problem::ValueSource;
use crate::secret::Secret;
use crate::sections::ModelSection;
use crate::tree::{Node, TreeEntry, TreeValue};

/// A Trae file that was not named and that the user trusts, as it was read.
#[derive(Clone, Copy)]
pub struct TrustedTrae<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    /// The keys of the `.env` next to it, each with the name of its provider.
    pub keys: &'a [(String, Secret)],
}

/// The addresses and keys of a trusted file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForeignEndpoints {
    addresses: BTreeSet<String>,
    keys: Vec<Secret>,
}

impl ForeignEndpoints {
    /// Reads what one source says. An address that the owner names too is the owner's.
    pub(crate) fn of(layers: &[Layer], foreign: &ValueSource, owners: &[String]) -> Self {
        let mut found = Self::default();
        for layer in layers.iter().filter(|layer| layer.source == *foreign) {
            for (path, leaf) in &layer.leaves {
                let (Some(key), Some(text)) = (path.last(), leaf.value.as_str()) else { continue };
                match key.as_str() {
                    "base_url" => {
                        found.addresses.insert(text.to_owned());
                    }
                    "api_key" => found.keys.push(Secret::new(text)),
                    _ => {}
                }
            }
        }
        let others = layers.iter().filter(|layer| layer.source != *foreign);
        let others = others.flat_map(|layer| &layer.leaves);
        let others = others.filter(|(path, _)| path.last().is_some_and(|key| key == "base_url"));
        let others = others.filter_map(|(_, leaf)| leaf.value.as_str());
        for owned in others.chain(owners.iter().map(String::as_str)) {
            found.addresses.remove(owned);
        }
        found
    }

    /// Tells whether an address is one of the file.
    pub fn has_address(&self, address: &str) -> bool {
        self.addresses.contains(address)
    }

    /// Tells whether a model is asked at an address of the file.
    pub fn has_address_of(&self, model: &ModelSection) -> bool {
        model.base_url.as_ref().is_some_and(|address| self.has_address(address))
    }

    /// The key that may be sent to a model's address.
    pub fn key_of<'a>(&self, model: &'a ModelSection) -> Option<&'a Secret> {
        let may_be_sent = |key: &&Secret| !self.has_address_of(model) || self.keys.contains(key);
        model.api_key.as_ref().filter(may_be_sent)
    }
}

/// Gives the providers of a mapped Trae file the keys of the `.env` next to it, which Trae prefers to those in the
/// file.
pub(crate) fn add_keys(tree: &mut Node, keys: &[(String, Secret)]) {
    let TreeValue::Table(sections) = &mut tree.value else { return };
    for section in sections.iter_mut().filter(|section| section.key == "providers") {
        let TreeValue::Table(providers) = &mut section.node.value else { continue };
        for provider in providers {
            let TreeValue::Table(members) = &mut provider.node.value else { continue };
            let kind = members.iter().find_map(|member| match &member.node.value {
                TreeValue::Text(text) if member.key == "provider" => Some(text.clone()),
                _ => None,
            });
            let kind = kind.unwrap_or_else(|| provider.key.clone());
            let Some((_, key)) = keys.iter().find(|(name, _)| name.eq_ignore_ascii_case(&kind)) else {
                continue;
            };
            members.retain(|member| member.key != "api_key");
            members.push(TreeEntry::new("api_key", Node::text(key.expose())));
        }
    }
}
