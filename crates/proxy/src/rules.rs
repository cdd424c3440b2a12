//! The rules of a session about hosts: data, and pure functions of it.
//!
//! A *name* is allowed by a pattern, and may then lead to any plain internet address. An address with a special use (a private
//! network, this machine) is reached only if the user's own list has it, as an address or as a range, whichever name leads
//! to it. `deny` beats `allow`, for names before they are resolved and for addresses after.

use std::net::IpAddr;

use crate::addresses::{AddressRange, nat64, special_use};
use crate::error::ProxyError;
use crate::groups::HOST_GROUPS;
use crate::names::{Authority, RequestedHost};

/// The ports of a pattern that names none.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// The treatment of a host that no pattern names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnlistedHosts {
    #[default]
    Deny,
    /// The user is asked once. An address is denied all the same: no user can judge it.
    Ask,
}

/// The hosts that a session may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules {
    allow: Vec<HostPattern>,
    deny: Vec<HostPattern>,
    unlisted: UnlistedHosts,
}

/// An entry of the user's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostPattern {
    /// The entry as it is written.
    text: String,
    hosts: PatternHosts,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternHosts {
    /// Exactly this name.
    Name(String),
    /// Every name below this one, not the name itself.
    Below(String),
    Range(AddressRange),
}

/// The decision about a host before it is resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostJudgement {
    /// A pattern allows it.
    Allowed { pattern: String },
    /// A pattern denies it.
    Denied { pattern: String },
    /// No pattern allows it, and the user is not asked.
    Unlisted { why: &'static str },
    /// No pattern allows it, and the user decides.
    Ask,
}

/// The reason why an address that a host leads to is not reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AddressRefusal {
    Special(&'static str),
    Denied { pattern: String },
}

impl HostRules {
    /// Reads the lists of a configuration. The error names the entry that cannot be used, and what to write instead.
    pub fn parse<S: AsRef<str>>(
        allow: &[S],
        deny: &[S],
        unlisted: UnlistedHosts,
    ) -> Result<Self, ProxyError> {
        let read = |entries: &[S]| -> Result<Vec<HostPattern>, ProxyError> {
            let lists: Result<Vec<_>, _> =
                entries.iter().map(|entry| HostPattern::parse(entry.as_ref())).collect();
            Ok(lists?.into_iter().flatten().collect())
        };
        Ok(Self { allow: read(allow)?, deny: read(deny)?, unlisted })
    }

    /// Tells whether no host can ever be reached, so that no proxy is needed.
    pub fn reach_nothing(&self) -> bool {
        self.allow.is_empty() && self.unlisted == UnlistedHosts::Deny
    }

    /// Judges a host without resolving it.
    pub(crate) fn judge(&self, host: &RequestedHost, port: u16) -> HostJudgement {
        let denies =
            |pattern: &&HostPattern| pattern.names(host) && pattern.port.is_none_or(|own| own == port);
        if let Some(pattern) = self.deny.iter().find(denies) {
            return HostJudgement::Denied { pattern: pattern.text.clone() };
        }
        if let Some(pattern) = self.allow.iter().find(|pattern| pattern.names(host) && pattern.opens(port)) {
            return HostJudgement::Allowed { pattern: pattern.text.clone() };
        }
        let is_named = self.allow.iter().any(|pattern| pattern.names(host));
        match (host, self.unlisted) {
            (RequestedHost::Name(_), UnlistedHosts::Ask) => HostJudgement::Ask,
            _ if is_named => HostJudgement::Unlisted { why: "allowed on other ports only" },
            (RequestedHost::Address(_), _) => {
                HostJudgement::Unlisted { why: "an address that is not listed" }
            }
            (RequestedHost::Name(_), UnlistedHosts::Deny) => HostJudgement::Unlisted { why: "not listed" },
        }
    }

    /// Checks an address that an allowed host leads to.
    pub(crate) fn check_address(
        &self,
        host: &RequestedHost,
        port: u16,
        address: IpAddr,
    ) -> Result<(), AddressRefusal> {
        let is_port = |pattern: &HostPattern| pattern.port.is_none_or(|own| own == port);
        if let Some(pattern) = self.deny.iter().find(|pattern| pattern.covers(address) && is_port(pattern)) {
            return Err(AddressRefusal::Denied { pattern: pattern.text.clone() });
        }
        let Some(special) = special_use(address) else { return Ok(()) };
        let is_listed = self.allow.iter().any(|pattern| match &pattern.hosts {
            PatternHosts::Range(range) => range.contains(address) && is_port(pattern),
            // A name that only ever means this machine is not written by accident.
            PatternHosts::Name(name) => {
                is_localhost(name) && pattern.names(host) && pattern.opens(port) && is_loopback(address)
            }
            PatternHosts::Below(_) => false,
        });
        if is_listed { Ok(()) } else { Err(AddressRefusal::Special(special)) }
    }
}

impl HostPattern {
    /// Reads an entry, which is one pattern or a group of them.
    fn parse(text: &str) -> Result<Vec<Self>, ProxyError> {
        let fail = |why: String| ProxyError::Pattern { pattern: text.to_owned(), why };
        if let Some(group) = HOST_GROUPS.iter().find(|group| group.name == text) {
            let pattern = |host: &&str| {
                let hosts = PatternHosts::Name((*host).to_owned());
                Self { text: text.to_owned(), hosts, port: None }
            };
            return Ok(group.hosts.iter().map(pattern).collect());
        }
        let rest = text.strip_prefix("registry:");
        if rest.is_some_and(|rest| !rest.bytes().all(|byte| byte.is_ascii_digit())) {
            let known: Vec<&str> = HOST_GROUPS.iter().map(|group| group.name).collect();
            return Err(fail(format!("the groups are {}", known.join(", "))));
        }
        if text.is_empty() {
            return Err(fail("it is empty".to_owned()));
        }
        if text.contains("://") {
            return Err(fail("write the host alone, without a scheme and a path".to_owned()));
        }
        let (hosts, port) = if text.contains('/') {
            parse_range(text).map_err(fail)?
        } else if text.contains('*') {
            parse_below(text).map_err(fail)?
        } else {
            parse_one(text).map_err(fail)?
        };
        Ok(vec![Self { text: text.to_owned(), hosts, port }])
    }

    /// Tells whether the pattern names a host.
    fn names(&self, host: &RequestedHost) -> bool {
        match (&self.hosts, host) {
            (PatternHosts::Name(own), RequestedHost::Name(name)) => own == name,
            (PatternHosts::Below(own), RequestedHost::Name(name)) => {
                name.strip_suffix(own.as_str()).is_some_and(|before| before.ends_with('.'))
            }
            (PatternHosts::Range(_), RequestedHost::Address(address)) => self.covers_exactly(*address),
            (PatternHosts::Range(_), RequestedHost::Name(_))
            | (PatternHosts::Name(_) | PatternHosts::Below(_), RequestedHost::Address(_)) => false,
        }
    }

    /// Tells whether an allowing pattern includes a port.
    fn opens(&self, port: u16) -> bool {
        match self.port {
            Some(own) => own == port,
            None => USUAL_PORTS.contains(&port),
        }
    }

    fn covers_exactly(&self, address: IpAddr) -> bool {
        match &self.hosts {
            PatternHosts::Range(range) => range.contains(address),
            PatternHosts::Name(_) | PatternHosts::Below(_) => false,
        }
    }

    /// Tells whether a denying pattern covers an address, or the address that this one leads to.
    fn covers(&self, address: IpAddr) -> bool {
        let inner = match address {
            IpAddr::V6(v6) => nat64(v6).map(IpAddr::V4),
            IpAddr::V4(_) => None,
        };
        self.covers_exactly(address) || inner.is_some_and(|inner| self.covers_exactly(inner))
    }
}

/// Tells whether a name is reserved for this machine.
fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

type ParsedPattern = Result<(PatternHosts, Option<u16>), String>;

/// Reads `RANGE`, `RANGE:PORT` and `[RANGE]:PORT`.
fn parse_range(text: &str) -> ParsedPattern {
    let (range, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((range, "")) => (range, None),
            Some((range, after)) => {
                (range, Some(after.strip_prefix(':').ok_or("a port is written as `[RANGE]:PORT`")?))
            }
            None => return Err("the bracket is not closed".to_owned()),
        },
        None => match text.split_once('/').and_then(|(_, bits)| bits.split_once(':')) {
            Some((_, port)) => (&text[..text.len() - port.len() - 1], Some(port)),
            None => (text, None),
        },
    };
    let range = AddressRange::parse(range)?;
    let port =
        port.map(|port| crate::names::parse_port(port.as_bytes()).map_err(|defect| defect.why().to_owned()));
    Ok((PatternHosts::Range(range), port.transpose()?))
}

/// Reads `*.NAME` and `*.NAME:PORT`.
fn parse_below(text: &str) -> ParsedPattern {
    if text == "*" {
        return Err("it would allow every host; name the hosts".to_owned());
    }
    let name = text.strip_prefix("*.").filter(|rest| !rest.contains('*'));
    let name = name.ok_or("a `*` may only stand for all names below one, as in `*.example.com`")?;
    match parse_one(name)? {
        (PatternHosts::Name(name), port) => Ok((PatternHosts::Below(name), port)),
        (PatternHosts::Range(_) | PatternHosts::Below(_), _) => {
            Err("addresses have no names below them; write a range like `10.0.0.0/8`".to_owned())
        }
    }
}

/// Reads a name or an address, perhaps with a port.
fn parse_one(text: &str) -> ParsedPattern {
    // An IPv6 address without brackets has no port.
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((PatternHosts::Range(AddressRange::single(address)), None));
    }
    let found = Authority::parse(text.as_bytes()).map_err(|defect| defect.why().to_owned())?;
    match found.host {
        RequestedHost::Name(name) => Ok((PatternHosts::Name(name), found.port)),
        RequestedHost::Address(address) => {
            let written = text.split_once(':').map_or(text, |(host, _)| host);
            if !text.starts_with('[') && written != address.to_string() {
                return Err(format!("write this address as `{address}`"));
            }
            Ok((PatternHosts::Range(AddressRange::single(address)), found.port))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> HostRules {
        HostRules::parse(allow, deny, UnlistedHosts::Deny).unwrap()
    }

    fn is_allowed(rules: &HostRules, asked: &str) -> bool {
        let asked = Authority::parse(asked.as_bytes()).unwrap();
        matches!(rules.judge(&asked.host, asked.port.unwrap()), HostJudgement::Allowed { .. })
    }

    #[test]
    fn a_pattern_names_its_hosts_and_no_look_alike() {
        for (pattern, asked, allowed) in [
            ("example.com", "example.com:443", true),
            ("example.com", "EXAMPLE.COM.:80", true),
            ("Example.COM.", "example.com:80", true),
            ("example.com", "www.example.com:443", false),
            ("example.com", "example.com:8443", false),
            ("example.com", "example.com:22", false),
            ("example.com:8443", "example.com:8443", true),
            ("example.com:8443", "example.com:443", false),
            ("*.example.com", "www.example.com:443", true),
            ("*.example.com", "a.b.c.example.com:443", true),
            ("*.example.com", "example.com:443", false),
            ("*.example.com", "evil-example.com:443", false),
            ("*.example.com", "xexample.com:443", false),
            ("*.example.com", "example.com.evil.test:443", false),
            ("*.example.com", "www.example.com.evil.test:443", false),
            ("*.example.com", "www.example.co:443", false),
            ("*.example.com:81", "www.example.com:81", true),
            ("*.example.com:81", "www.example.com:80", false),
            ("bücher.example", "xn--bcher-kva.example:443", true),
            ("*.bücher.example", "a.xn--bcher-kva.example:443", true),
            ("127.0.0.1", "127.0.0.1:80", true),
            ("127.0.0.1", "0x7f.1:80", true),
            ("127.0.0.1", "[::ffff:127.0.0.1]:80", true),
            ("127.0.0.1", "[64:ff9b::127.0.0.1]:80", false),
            ("127.0.0.1", "127.0.0.1:8080", false),
            ("127.0.0.1", "localhost:80", false),
            ("127.0.0.1:8080", "127.0.0.1:8080", true),
            ("10.0.0.0/8", "10.2.3.4:443", true),
            ("10.0.0.0/8", "11.2.3.4:443", false),
            ("10.0.0.0/8:5000", "10.2.3.4:5000", true),
            ("10.0.0.0/8:5000", "10.2.3.4:443", false),
            ("::1", "[::1]:80", true),
            ("[::1]", "[0:0::1]:80", true),
            ("[::1]:3000", "[::1]:3000", true),
            ("fd00::/8", "[fd12::1]:443", true),
            ("[fd00::/8]:81", "[fd12::1]:81", true),
            ("localhost", "localhost:80", true),
            ("localhost", "127.0.0.1:80", false),
            ("localhost:3000", "localhost:3000", true),
            ("registry:cargo", "index.crates.io:443", true),
            ("registry:cargo", "evil.crates.io:443", false),
            ("registry:npm", "registry.npmjs.org:443", true),
            ("registry:pypi", "files.pythonhosted.org:443", true),
            ("registry:go", "proxy.golang.org:443", true),
            ("registry:maven", "repo.maven.apache.org:443", true),
            ("registry:debian", "deb.debian.org:80", true),
            ("registry:5000", "registry:5000", true),
        ] {
            assert_eq!(is_allowed(&rules(&[pattern], &[]), asked), allowed, "{pattern} {asked}");
        }
    }

    #[test]
    fn an_entry_that_is_no_pattern_is_named_with_what_to_write() {
        for (pattern, why) in [
            ("", "it is empty"),
            ("*", "it would allow every host; name the hosts"),
            ("*.*.com", "a `*` may only stand for all names below one, as in `*.example.com`"),
            ("ex*mple.com", "a `*` may only stand for all names below one, as in `*.example.com`"),
            ("*.10.0.0.1", "addresses have no names below them; write a range like `10.0.0.0/8`"),
            ("https://example.com", "write the host alone, without a scheme and a path"),
            ("example.com/path", "a range has the form `10.0.0.0/8` or `fd00::/8`"),
            ("10.0.0.7/8", "the range begins at another address: write `10.0.0.0/8`"),
            ("0x7f000001", "write this address as `127.0.0.1`"),
            ("0177.0.0.1:80", "write this address as `127.0.0.1`"),
            ("user@example.com", "a user name in the address is not accepted"),
            ("exa mple.com", "the host has a character that no name has"),
            ("example.com:0", "the port is not a number from 1 to 65535"),
            ("10.0.0.0/8:x", "the port is not a number from 1 to 65535"),
            ("example..com", "a part of the host's name is empty"),
            (
                "registry:rubygems",
                "the groups are registry:cargo, registry:npm, registry:pypi, registry:go, registry:maven, registry:debian",
            ),
        ] {
            let error = HostRules::parse(&["example.com", pattern], &[], UnlistedHosts::Deny).unwrap_err();
            assert_eq!(error, ProxyError::Pattern { pattern: pattern.to_owned(), why: why.to_owned() });
            assert_eq!(error.to_string(), format!("`{pattern}` cannot be used as a host: {why}"));
        }
    }

    #[test]
    fn deny_beats_allow_on_every_port_that_it_does_not_name() {
        let rules = rules(
            &["*.example.com", "a.example.com:8080", "10.0.0.0/8", "b.example.com"],
            &["a.example.com", "b.example.com:80", "10.1.0.0/16"],
        );
        for (asked, allowed) in [
            ("a.example.com:443", false),
            ("a.example.com:8080", false),
            ("b.example.com:80", false),
            ("b.example.com:443", true),
            ("c.example.com:443", true),
            ("10.2.0.1:80", true),
            ("10.1.0.1:80", false),
            ("[::ffff:10.1.0.1]:80", false),
        ] {
            assert_eq!(is_allowed(&rules, asked), allowed, "{asked}");
        }
    }

    #[test]
    fn an_address_is_denied_and_never_asked_about_and_a_name_is_asked_about() {
        let rules = HostRules::parse(&["example.com"], &["denied.test"], UnlistedHosts::Ask).unwrap();
        let judge = |host: &str| rules.judge(&RequestedHost::parse(host.as_bytes()).unwrap(), 443);
        assert_eq!(judge("new.test"), HostJudgement::Ask);
        assert_eq!(judge("denied.test"), HostJudgement::Denied { pattern: "denied.test".to_owned() });
        let unlisted = HostJudgement::Unlisted { why: "an address that is not listed" };
        assert_eq!(judge("93.184.216.34"), unlisted);
        assert_eq!(judge("2130706433"), unlisted);
        assert_eq!(judge("example.com"), HostJudgement::Allowed { pattern: "example.com".to_owned() });
    }

    #[test]
    fn a_special_address_is_reached_only_if_the_list_has_it() {
        let checked = |allow: &[&str], deny: &[&str], host: &str, port, address: &str| {
            let host = RequestedHost::parse(host.as_bytes()).unwrap();
            rules(allow, deny).check_address(&host, port, address.parse().unwrap()).is_ok()
        };
        let name = "db.example.com";
        assert!(checked(&[name], &[], name, 443, "93.184.216.34"));
        assert!(!checked(&[name], &[], name, 443, "10.0.0.1"));
        assert!(checked(&[name, "10.0.0.0/8"], &[], name, 443, "10.0.0.1"));
        assert!(checked(&["db.example.com:5432", "10.0.0.0/8"], &[], name, 5432, "10.0.0.1"));
        assert!(!checked(&[name, "10.0.0.0/8:5432"], &[], name, 443, "10.0.0.1"));
        assert!(!checked(&[name, "10.0.0.0/8"], &["10.0.0.1"], name, 443, "10.0.0.1"));
        assert!(!checked(&[name, "10.0.0.0/8"], &[], name, 443, "64:ff9b::10.0.0.1"));
        assert!(!checked(&[name], &["93.184.216.0/24"], name, 443, "93.184.216.34"));
        assert!(!checked(&[name], &["93.184.216.0/24"], name, 443, "64:ff9b::93.184.216.34"));
        assert!(checked(&["localhost"], &[], "localhost", 80, "127.0.0.1"));
        assert!(checked(&["localhost"], &[], "localhost", 80, "::1"));
        assert!(!checked(&["localhost"], &[], "localhost", 80, "10.0.0.1"));
        assert!(checked(&["app.localhost:3000"], &[], "app.localhost", 3000, "127.0.0.1"));
        assert!(!checked(&["*.localhost"], &[], "app.localhost", 80, "127.0.0.1"));
        assert!(!checked(&["localhost", name], &[], name, 80, "127.0.0.1"));
    }

    #[test]
    fn rules_that_allow_nothing_say_so() {
        assert!(rules(&[], &["example.com"]).reach_nothing());
        assert!(!rules(&["example.com"], &[]).reach_nothing());
        assert!(!HostRules::parse::<&str>(&[], &[], UnlistedHosts::Ask).unwrap().reach_nothing());
    }
}
