//! The choice of a key for an address: one function, [`key_for`], with one table of rules.
//!
//! | the address comes from | a key that came with it | a key of the environment or of `auth` |
//! |---|---|---|
//! | the provider's own default | sent | sent |
//! | the owner: configuration, flags, environment; the provider is named | sent | sent |
//! | the owner, and no provider is named | sent | sent if the address is the default of the key's provider |
//! | a flag of `resume` that names no provider | sent | sent if the address is the default of the key's provider |
//! | a request over the wire, or a model stored by the server | sent | not sent |
//! | a Trae file of the project that is trusted and not named | sent | not sent |
//! | the journal of a session | sent if it was sent there before | sent if it was sent there before |
//!
//! "Sent there before" is known by a mark that the session stores: a keyed hash of address and key. The key of that
//! hash is a file in Lathe's folder, so a journal from elsewhere has no mark that fits, whatever address it names.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use lathe_protocol::{Digest, KeyMark, ModelChoice};

use crate::models::auth::Stored;
use crate::models::providers::{CUSTOM_PROVIDER, PROVIDERS, Provider, variable};

/// The source that named an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AddressFrom {
    /// The user's configuration, flags or environment.
    #[default]
    Owner,
    /// A flag of a resumed session, whose provider only the journal names.
    Unnamed,
    /// A request to the server, or a model that the server stored at the request of a client.
    Wire,
    /// A Trae file of the project that the user trusts but did not name.
    Project,
    /// The journal of a session, with the mark that the session stores of its key.
    Session(Option<KeyMark>),
}

/// Reads a variable of the environment.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The places in which to search for keys.
pub(crate) struct KeyRing<'a> {
    pub(crate) env: Env<'a>,
    pub(crate) stored: &'a Stored,
    pub(crate) marks: &'a Marks,
}

/// An address that a client will contact, and the source that named it.
pub(crate) struct ModelEndpoint<'a> {
    pub(crate) address: &'a str,
    pub(crate) from: &'a AddressFrom,
}

/// A key and its source.
pub(crate) struct Key {
    pub(crate) value: String,
    pub(crate) source: String,
}

/// The error that the address comes from the journal and none of the present keys was sent to it before.
pub(crate) struct NotTheSameKey;

/// The source of a key that came with its address.
pub(crate) const GIVEN: &str = "configuration or flag";
/// The prefixes of other sources.
pub(crate) const FROM_VARIABLE: &str = "environment ";
pub(crate) const FROM_STORE: &str = "stored ";
pub(crate) const FROM_ENTRY: &str = "model of the server ";

/// The name under which a server stored the model of a session, if the session's key was that model's.
pub fn server_model_name(choice: &ModelChoice) -> Option<&str> {
    choice.key.as_ref()?.source.strip_prefix(FROM_ENTRY)
}

/// The variable of a key for any provider.
const OWN_VARIABLE: &str = "LATHE_API_KEY";

/// The keys that a request brings along.
pub(crate) struct OfferedKeys<'a> {
    /// The key that came with the address.
    pub(crate) given: Option<&'a str>,
    /// Keys that are sent only where `recorded` shows that they were sent before.
    pub(crate) others: &'a [String],
    pub(crate) recorded: Option<&'a KeyMark>,
}

/// The key for an address, if there is one.
pub(crate) fn key_for(
    endpoint: &ModelEndpoint<'_>,
    provider: &Provider,
    name: &str,
    offered: &OfferedKeys<'_>,
    ring: &KeyRing<'_>,
) -> Result<Option<Key>, NotTheSameKey> {
    let given = offered.given.map(|value| ring.with_source(value, provider, name));
    let others = || offered.others.iter().map(|value| ring.with_source(value, provider, name));
    let usual = |given: Option<Key>| {
        let was_sent = |key: &Key| {
            let mark = ring.marks.of(endpoint.address, Some(&key.value));
            mark.is_some() && mark.as_ref() == offered.recorded.map(|recorded| &recorded.mark)
        };
        given.or_else(|| ring.find(provider, name).into_iter().next()).or_else(|| others().find(was_sent))
    };
    let is_default = same_address(endpoint.address, provider.base_url);
    match endpoint.from {
        AddressFrom::Owner if name == CUSTOM_PROVIDER => {
            // The address itself may name a provider.
            let known = PROVIDERS.iter().find(|known| same_address(endpoint.address, known.base_url));
            let of_address = || known.and_then(|known| ring.find(known, known.name).into_iter().next());
            Ok(usual(given).or_else(of_address))
        }
        AddressFrom::Owner => Ok(usual(given)),
        AddressFrom::Unnamed | AddressFrom::Wire | AddressFrom::Project | AddressFrom::Session(_)
            if is_default =>
        {
            Ok(usual(given))
        }
        AddressFrom::Unnamed | AddressFrom::Wire | AddressFrom::Project => Ok(given),
        AddressFrom::Session(mark) => {
            let mark = mark.as_ref().ok_or(NotTheSameKey)?;
            let is_same =
                |key: Option<&str>| ring.marks.of(endpoint.address, key).as_ref() == Some(&mark.mark);
            if is_same(None) {
                return Ok(None);
            }
            let known = given.into_iter().chain(others()).chain(ring.find(provider, name));
            known.into_iter().find(|key| is_same(Some(&key.value))).map(Some).ok_or(NotTheSameKey)
        }
    }
}

impl KeyRing<'_> {
    /// A key with its source: the configuration takes keys from variables too.
    fn with_source(&self, value: &str, provider: &Provider, name: &str) -> Key {
        let known = || self.find(provider, name).into_iter().find(|key| key.value == value);
        let source = match (self.env)(OWN_VARIABLE).is_some_and(|own| own == value) {
            true => format!("{FROM_VARIABLE}{OWN_VARIABLE}"),
            false => known().map_or_else(|| GIVEN.to_owned(), |key| key.source),
        };
        Key { value: value.to_owned(), source }
    }

    /// The keys of a provider, in the order in which to try them. A provider that Lathe does not know has no
    /// variable: `STRIPE_API_KEY` belongs to another program. It may have a key that the user stored under its name.
    pub(crate) fn find(&self, provider: &Provider, name: &str) -> Vec<Key> {
        let is_known = crate::models::providers::provider(name).is_some();
        let own = variable(name, "API_KEY");
        let mut names: Vec<String> = Vec::new();
        if is_known {
            names.push(own.clone());
        }
        if is_known || name == provider.name {
            names.extend(provider.key_variables());
        }
        names.dedup();
        let variable =
            |name: &String| Some(Key { value: (self.env)(name)?, source: format!("{FROM_VARIABLE}{name}") });
        let kept = |name: &String| {
            let value = self.stored.get(name)?.clone();
            Some(Key { value, source: format!("{FROM_STORE}{name}") })
        };
        let mut keys: Vec<Key> =
            names.iter().filter_map(|name| variable(name).or_else(|| kept(name))).collect();
        if !is_known && !own.starts_with(KEPT_BY_SERVER) {
            keys.extend(kept(&own));
        }
        keys
    }
}

/// The prefix of the names under which the server stores keys of its models: no provider has such a name.
const KEPT_BY_SERVER: &str = "SERVER_MODEL_";

/// Tells whether two addresses are the same apart from their spelling.
pub fn same_address(one: &str, other: &str) -> bool {
    match (address_parts(one), address_parts(other)) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// Scheme, host, port and path. None for an address that holds anything else: it equals no other address.
fn address_parts(address: &str) -> Option<(String, String, u16, String)> {
    let (scheme, rest) = address.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let (authority, path) = match rest.find(['/', '?', '#', '\\']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if authority.contains('@') || path.contains(['?', '#', '\\', '%']) || path.contains("..") {
        return None;
    }
    let usual = if scheme == "https" { 443 } else { 80 };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then(|| (scheme, host, port, path.trim_end_matches('/').to_owned()))
}

/// Makes marks of keys. A mark shows whether a key is the same and reveals nothing about it.
pub(crate) struct Marks(Option<[u8; 32]>);

impl Marks {
    /// Loads the hash key from its file in Lathe's folder, or creates the file.
    pub(crate) fn load(file: &Path) -> Self {
        Self(load_or_create(file).ok())
    }

    /// Marks for code that contacts no address of a session.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The mark of a key at an address, or of the address alone. None without the file.
    fn of(&self, address: &str, key: Option<&str>) -> Option<String> {
        let secret = self.0.as_ref()?;
        let mut message = address.as_bytes().to_vec();
        message.push(0);
        message.extend(key.map(str::as_bytes).unwrap_or_default());
        // HMAC, by its definition.
        let padded =
            |byte: u8| -> Vec<u8> { (0..64).map(|at| secret.get(at).copied().unwrap_or(0) ^ byte).collect() };
        let inner = Digest::of(&[padded(0x36), message].concat());
        let outer = Digest::of(&[padded(0x5c), inner.as_str().as_bytes().to_vec()].concat());
        Some(outer.as_str().to_owned())
    }

    /// The mark with the source of the key, as a session stores it.
    pub(crate) fn mark(&self, address: &str, key: Option<&Key>) -> Option<KeyMark> {
        let mark = self.of(address, key.map(|key| key.value.as_str()))?;
        Some(KeyMark { source: key.map_or("none", |key| &key.source).to_owned(), mark })
    }
}

fn load_or_create(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    if !path.exists() {
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&bytes)?;
        // If another process made the file first, its content is used.
        if file.persist_noclobber(path).is_ok() {
            return Ok(bytes);
        }
    }
    let mut file = std::fs::OpenOptions::new().read(true).custom_flags(nix::libc::O_NOFOLLOW).open(path)?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::providers::{CUSTOM, provider};

    const OPENAI: &str = "https://api.openai.com/v1";

    fn joined(
        (address, from): (&str, &AddressFrom),
        name: &str,
        given: Option<&str>,
        marks: &Marks,
    ) -> Result<Option<String>, &'static str> {
        let env = |name: &str| match name {
            "OPENAI_API_KEY" => Some("of-openai".to_owned()),
            "STRIPE_API_KEY" => Some("of-stripe".to_owned()),
            _ => None,
        };
        let stored = Stored::from([
            ("SERVER_MODEL_X_API_KEY".to_owned(), "of-x".to_owned()),
            ("WORK_API_KEY".to_owned(), "of-work".to_owned()),
        ]);
        let ring = KeyRing { env: &env, stored: &stored, marks };
        let known = provider(name).unwrap_or(&CUSTOM);
        let offered = OfferedKeys { given, others: &[], recorded: None };
        match key_for(&ModelEndpoint { address, from }, known, name, &offered, &ring) {
            Ok(key) => Ok(key.map(|key| key.value)),
            Err(NotTheSameKey) => Err("not the same key"),
        }
    }

    #[test]
    fn the_table_of_rules() {
        use AddressFrom::{Owner, Project, Unnamed, Wire};
        let marks = Marks::none();
        let own = |text: &str| Ok(Some(text.to_owned()));
        for (address, from, name, given, wanted) in [
            (OPENAI, Owner, "openai", None, own("of-openai")),
            ("http://mine/v1", Owner, "openai", None, own("of-openai")),
            ("http://mine/v1", Owner, "openai", Some("given"), own("given")),
            ("http://mine/v1", Owner, "custom", None, Ok(None)),
            ("http://127.0.0.1:8080/v1", Owner, "custom", None, Ok(None)),
            ("http://mine/v1", Owner, "custom", Some("given"), own("given")),
            (OPENAI, Owner, "custom", None, own("of-openai")),
            ("https://api.openai.com.evil/v1", Owner, "custom", None, Ok(None)),
            ("http://api.openai.com/v1", Owner, "custom", None, Ok(None)),
            ("http://mine/v1", Unnamed, "openai", None, Ok(None)),
            ("http://mine/v1", Unnamed, "openai", Some("given"), own("given")),
            ("http://mine/v1", Unnamed, "work", None, Ok(None)),
            (OPENAI, Unnamed, "openai", None, own("of-openai")),
            ("http://mine/v1", Owner, "stripe", None, Ok(None)),
            ("http://mine/v1", Owner, "work", None, own("of-work")),
            ("http://mine/v1", Owner, "server_model_x", None, Ok(None)),
            (OPENAI, Wire, "openai", None, own("of-openai")),
            ("HTTPS://API.openai.com:443/v1/", Wire, "openai", None, own("of-openai")),
            ("http://api.openai.com/v1", Wire, "openai", None, Ok(None)),
            ("https://api.openai.com.evil/v1", Wire, "openai", None, Ok(None)),
            ("https://api.openai.com@evil/v1", Wire, "openai", None, Ok(None)),
            ("https://evil/v1#https://api.openai.com/v1", Wire, "openai", None, Ok(None)),
            ("https://api.openai.com/v1/../evil", Wire, "openai", None, Ok(None)),
            (OPENAI, Wire, "stripe", None, Ok(None)),
            ("http://evil/v1", Wire, "openai", Some("given"), own("given")),
            ("http://evil/v1", Wire, "work", None, Ok(None)),
            (OPENAI, Project, "openai", None, own("of-openai")),
            ("http://evil/v1", Project, "openai", None, Ok(None)),
            ("http://evil/v1", Project, "custom", None, Ok(None)),
            ("http://evil/v1", Project, "work", None, Ok(None)),
            ("http://evil/v1", Project, "openai", Some("given"), own("given")),
            ("http://evil/v1", AddressFrom::Session(None), "openai", None, Err("not the same key")),
            ("http://evil/v1", AddressFrom::Session(None), "openai", Some("given"), Err("not the same key")),
        ] {
            assert_eq!(joined((address, &from), name, given, &marks), wanted, "{address} {from:?} {name}");
        }
    }

    #[test]
    fn another_key_of_the_user_goes_only_where_it_went_before() {
        let home = tempfile::tempdir().unwrap();
        let marks = Marks::load(&home.path().join("marks.key"));
        let key = Key { value: "other".to_owned(), source: String::new() };
        let recorded = marks.mark("https://api.groq.com/openai/v1", Some(&key));
        let (stored, env) = (Stored::new(), |_: &str| None);
        let ring = KeyRing { env: &env, stored: &stored, marks: &marks };
        let others = ["first".to_owned(), "other".to_owned()];
        let joined = |address: &str, recorded: Option<&KeyMark>| {
            let offered = OfferedKeys { given: None, others: &others, recorded };
            let endpoint = ModelEndpoint { address, from: &AddressFrom::Owner };
            key_for(&endpoint, provider("groq").unwrap(), "groq", &offered, &ring)
                .ok()
                .flatten()
                .map(|key| key.value)
        };
        assert_eq!(joined("https://api.groq.com/openai/v1", recorded.as_ref()), Some("other".to_owned()));
        assert_eq!(joined("https://api.groq.com/openai/v1", None), None);
        assert_eq!(joined("https://elsewhere/v1", recorded.as_ref()), None);
    }

    #[test]
    fn a_session_gets_the_key_it_had_at_the_address_it_had_it_for() {
        let home = tempfile::tempdir().unwrap();
        let marks = Marks::load(&home.path().join("marks.key"));
        let key = |value: &str| Key { value: value.to_owned(), source: "x".to_owned() };
        let session = |marks: &Marks, address: &str, value: &str| {
            AddressFrom::Session(marks.mark(address, Some(&key(value))))
        };
        let mine = session(&marks, "http://mine", "of-openai");
        assert_eq!(joined(("http://mine", &mine), "openai", None, &marks), Ok(Some("of-openai".to_owned())));
        assert_eq!(joined(("http://evil", &mine), "openai", None, &marks), Err("not the same key"));
        let dummy = session(&marks, "http://mine", "dummy");
        assert_eq!(joined(("http://mine", &dummy), "openai", None, &marks), Err("not the same key"));
        assert_eq!(
            joined(("http://mine", &dummy), "openai", Some("dummy"), &marks),
            Ok(Some("dummy".to_owned()))
        );
        let none = AddressFrom::Session(marks.mark("http://mine", None));
        assert_eq!(joined(("http://mine", &none), "openai", None, &marks), Ok(None));
        // Marks of another home fit nothing here, and the file is made only once.
        let other = tempfile::tempdir().unwrap();
        let foreign = session(&Marks::load(&other.path().join("marks.key")), "http://evil", "of-openai");
        assert_eq!(joined(("http://evil", &foreign), "openai", None, &marks), Err("not the same key"));
        assert_eq!(Marks::load(&home.path().join("marks.key")).of("a", None), marks.of("a", None));
        // Without the file nothing fits, not even an empty mark.
        let empty = AddressFrom::Session(Some(KeyMark { source: String::new(), mark: String::new() }));
        assert_eq!(joined(("http://evil", &empty), "openai", None, &Marks::none()), Err("not the same key"));
    }
}
