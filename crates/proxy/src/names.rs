//! Hosts in their only normal form.
//!
//! Rules are compared with the normal form, the resolver gets the normal form, and what has none is refused. So there is no
//! spelling that the rules read in one way and the resolver in another. In particular, whatever a resolver would take as an
//! address is an address here, and no resolver is asked about it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::addresses::{ends_in_number, legacy_ipv4};

/// A host that a client asks for or a pattern names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RequestedHost {
    /// In lower case and punycode, without a final dot.
    Name(String),
    /// In canonical form: an IPv4 address is never written as a mapped one.
    Address(IpAddr),
}

/// The reasons why text is not a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostDefect {
    /// The text has not the form of a host. The request is bad.
    Malformed(&'static str),
    /// The text has the form of a host, but can never be one that is allowed. The request is denied.
    Impossible(&'static str),
}

impl HostDefect {
    pub(crate) fn why(self) -> &'static str {
        match self {
            HostDefect::Malformed(why) | HostDefect::Impossible(why) => why,
        }
    }
}

impl fmt::Display for RequestedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestedHost::Name(name) => f.write_str(name),
            RequestedHost::Address(IpAddr::V4(address)) => address.fmt(f),
            RequestedHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl RequestedHost {
    pub(crate) fn address(address: impl Into<IpAddr>) -> Self {
        Self::Address(address.into().to_canonical())
    }

    /// Reads a host without a port.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, HostDefect> {
        if text.first() == Some(&b'[') || text.contains(&b':') {
            return Self::parse_ipv6(text);
        }
        if !text.iter().all(|byte| !byte.is_ascii() || is_name_byte(*byte)) {
            return Err(HostDefect::Malformed("the host has a character that no name has"));
        }
        let undotted = text.strip_suffix(b".").unwrap_or(text);
        if undotted.split(|byte| *byte == b'.').any(<[u8]>::is_empty) {
            return Err(HostDefect::Malformed("a part of the host's name is empty"));
        }
        let name = Uts46::new()
            .to_ascii(text, AsciiDenyList::URL, Hyphens::Allow, DnsLength::VerifyAllowRootDot)
            .map_err(|_| HostDefect::Impossible("the host is not a valid domain name"))?;
        let name = name.strip_suffix('.').unwrap_or(&name);
        // Other characters may become these, so everything is checked again.
        if !name.bytes().all(is_name_byte) || name.split('.').any(str::is_empty) {
            return Err(HostDefect::Impossible("the host is not a valid domain name"));
        }
        if ends_in_number(name) {
            let address = legacy_ipv4(name);
            return address
                .map(Self::address)
                .ok_or(HostDefect::Impossible("the host is neither a name nor an address"));
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }

    fn parse_ipv6(text: &[u8]) -> Result<Self, HostDefect> {
        let malformed = HostDefect::Malformed("the host is not an IPv6 address");
        let text = std::str::from_utf8(text).map_err(|_| malformed)?;
        let inner = match text.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or(malformed)?,
            None => text,
        };
        if let Some((address, _)) = inner.split_once('%') {
            address.parse::<Ipv6Addr>().map_err(|_| malformed)?;
            return Err(HostDefect::Impossible("an address with a zone is never reached"));
        }
        inner.parse::<Ipv6Addr>().map(Self::address).map_err(|_| malformed)
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// A host and the port that was written with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) host: RequestedHost,
    pub(crate) port: Option<u16>,
}

impl Authority {
    /// Reads `HOST` or `HOST:PORT`.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, HostDefect> {
        if text.contains(&b'@') {
            return Err(HostDefect::Malformed("a user name in the address is not accepted"));
        }
        let (host, port) = split_port(text)?;
        Ok(Self { host: RequestedHost::parse(host)?, port })
    }
}

/// Splits `HOST:PORT` and `[HOST]:PORT`.
fn split_port(text: &[u8]) -> Result<(&[u8], Option<u16>), HostDefect> {
    let (host, port) = if text.first() == Some(&b'[') {
        let end = text.iter().position(|byte| *byte == b']');
        let end = end.ok_or(HostDefect::Malformed("a bracket of the address is not closed"))?;
        match text.get(end + 1..) {
            None | Some([]) => return Ok((text, None)),
            Some([b':', port @ ..]) => (&text[..=end], port),
            Some(_) => return Err(HostDefect::Malformed("there is text after the address")),
        }
    } else {
        let mut parts = text.split(|byte| *byte == b':');
        let host = parts.next().unwrap_or_default();
        match (parts.next(), parts.next()) {
            (None, _) => return Ok((text, None)),
            (Some(port), None) => (host, port),
            (Some(_), Some(_)) => return Err(HostDefect::Malformed("an IPv6 address needs brackets")),
        }
    };
    parse_port(port).map(|port| (host, Some(port)))
}

/// Reads a port: digits only, not 0.
pub(crate) fn parse_port(text: &[u8]) -> Result<u16, HostDefect> {
    let malformed = HostDefect::Malformed("the port is not a number from 1 to 65535");
    if text.is_empty() || text.len() > 5 || !text.iter().all(u8::is_ascii_digit) {
        return Err(malformed);
    }
    let number = text.iter().fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    u16::try_from(number).ok().filter(|port| *port != 0).ok_or(malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        match RequestedHost::parse(text.as_bytes()) {
            Ok(RequestedHost::Name(name)) => format!("name {name}"),
            Ok(RequestedHost::Address(address)) => format!("address {address}"),
            Err(HostDefect::Malformed(_)) => "malformed".to_owned(),
            Err(HostDefect::Impossible(_)) => "impossible".to_owned(),
        }
    }

    #[test]
    fn a_host_has_one_normal_form() {
        for (text, form) in [
            ("example.com", "name example.com"),
            ("EXAMPLE.Com", "name example.com"),
            ("example.com.", "name example.com"),
            ("a_b.example.com", "name a_b.example.com"),
            ("xn--bcher-kva.example", "name xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "name xn--bcher-kva.example"),
            ("bücher.example", "name xn--bcher-kva.example"),
            ("BÜCHER.example", "name xn--bcher-kva.example"),
            ("example。com", "name example.com"),
            ("ｅｘａｍｐｌｅ.com", "name example.com"),
            ("exam\u{ad}ple.com", "name example.com"),
            ("localhost", "name localhost"),
            ("127.0.0.1e", "name 127.0.0.1e"),
            ("127.0.0.1.example", "name 127.0.0.1.example"),
            ("127.0.0.1", "address 127.0.0.1"),
            ("127.0.0.1.", "address 127.0.0.1"),
            ("0x7f000001", "address 127.0.0.1"),
            ("0X7F000001", "address 127.0.0.1"),
            ("0177.0.0.1", "address 127.0.0.1"),
            ("2130706433", "address 127.0.0.1"),
            ("127.1", "address 127.0.0.1"),
            ("①②⑦.⓪.⓪.①", "address 127.0.0.1"),
            ("１２７。１", "address 127.0.0.1"),
            ("::1", "address ::1"),
            ("[::1]", "address ::1"),
            ("[::ffff:127.0.0.1]", "address 127.0.0.1"),
            ("[::ffff:7f00:1]", "address 127.0.0.1"),
            ("[64:ff9b::127.0.0.1]", "address 64:ff9b::7f00:1"),
            ("[2002:7f00:1::]", "address 2002:7f00:1::"),
            ("[fe80::1%eth0]", "impossible"),
            ("[fe80::1%25eth0]", "impossible"),
            ("fe80::1%1", "impossible"),
            ("1.2.3.4.5", "impossible"),
            ("256.1.1.1", "impossible"),
            ("example.com.1", "impossible"),
            ("example.0x7f", "impossible"),
            ("xn--a.example", "impossible"),
            ("xn--.example", "impossible"),
            ("", "malformed"),
            (".", "malformed"),
            ("..", "malformed"),
            (".example.com", "malformed"),
            ("example..com", "malformed"),
            ("example.com..", "malformed"),
            ("exa mple.com", "malformed"),
            ("example.com ", "malformed"),
            ("example.com\t", "malformed"),
            ("example.com\0", "malformed"),
            ("example.com\0.evil.test", "malformed"),
            ("example%2ecom", "malformed"),
            ("user@example.com", "malformed"),
            ("example.com/", "malformed"),
            ("example.com\\evil", "malformed"),
            ("*.example.com", "malformed"),
            ("[::1", "malformed"),
            ("[127.0.0.1]", "malformed"),
            ("[v1.x]", "malformed"),
            (":::", "malformed"),
        ] {
            assert_eq!(normal(text), form, "{text:?}");
        }
        assert_eq!(normal(&format!("{}.com", "a".repeat(64))), "impossible");
        assert_eq!(normal(&"a.".repeat(130)), "impossible");
        assert_eq!(
            RequestedHost::parse(b"\xff\xfe.com"),
            Err(HostDefect::Impossible("the host is not a valid domain name"))
        );
    }

    #[test]
    fn an_authority_has_a_host_and_perhaps_a_port() {
        let parsed = |text: &str| {
            Authority::parse(text.as_bytes()).ok().map(|found| (found.host.to_string(), found.port))
        };
        assert_eq!(parsed("Example.com:8443"), Some(("example.com".to_owned(), Some(8443))));
        assert_eq!(parsed("example.com"), Some(("example.com".to_owned(), None)));
        assert_eq!(parsed("[::1]:80"), Some(("[::1]".to_owned(), Some(80))));
        assert_eq!(parsed("[::1]"), Some(("[::1]".to_owned(), None)));
        for text in [
            "example.com:",
            "example.com:0",
            "example.com:65536",
            "example.com:+80",
            "example.com:080808",
            "example.com:80:80",
            "example.com: 80",
            "user@example.com:80",
            "user:word@example.com:80",
            "::1:80",
            "[::1]80",
            "[::1]:",
            ":80",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
