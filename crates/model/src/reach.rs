//! The addresses that a client may connect to.
//!
//! The user of this machine may name any server, including one on it. A client that only reaches a server of ours may
//! not: such an address would give it access to services that only this machine can reach. For such a client a host
//! must lead outside. That is checked at the time of the connection, in the lookup that the connection itself uses,
//! so a name cannot have one address during the check and another a moment later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use lathe_protocol::NetworkReach;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

const INWARD: &str = "is an address of this machine or its own networks";

/// The reason why a server with this address is refused. A name may still turn out to lead inward when it is looked
/// up.
pub fn address_refusal(reach: NetworkReach, base_url: &str) -> Option<String> {
    if reach == NetworkReach::Anywhere {
        return None;
    }
    let url = reqwest::Url::parse(base_url).ok()?;
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']');
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_inward = match host.parse::<IpAddr>() {
        Ok(address) => !is_outside(address),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    };
    is_inward.then(|| format!("`{host}` {INWARD}"))
}

/// Restricts a client to its reach.
pub(crate) fn restrict(reach: NetworkReach, client: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
    match reach {
        NetworkReach::Anywhere => client,
        // A proxy would look the name up itself.
        NetworkReach::Outside => client.no_proxy().dns_resolver(Arc::new(OutsideOnly)),
    }
}

/// Looks names up, and refuses those with any inward address.
struct OutsideOnly;

impl Resolve for OutsideOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            match found.iter().find(|found| !is_outside(found.ip())) {
                Some(inward) => {
                    Err(format!("`{}` leads to {}, which {INWARD}", name.as_str(), inward.ip()).into())
                }
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

/// Blocks of IPv4 that are not plain internet addresses: those of IANA's registry of special purposes, and multicast.
const SPECIAL_V4: [(Ipv4Addr, u32); 19] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::new(255, 255, 255, 255), 32),
];

/// The same for IPv6, inside of `2000::/3`; the internet uses no addresses outside of that. Teredo and 6to4 contain
/// an arbitrary IPv4 address, so no such address is plain.
const SPECIAL_V6: [(Ipv6Addr, u32); 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x2620, 0x004f, 0x8000, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The block of IPv6 that the internet uses.
const INTERNET_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Tells whether an address is a plain internet address, in any notation.
fn is_outside(address: IpAddr) -> bool {
    // A mapped address (`::ffff:…`) is the IPv4 address itself.
    match address.to_canonical() {
        IpAddr::V4(v4) => !SPECIAL_V4
            .iter()
            .any(|(block, bits)| block.to_bits() >> (32 - bits) == v4.to_bits() >> (32 - bits)),
        IpAddr::V6(v6) => {
            let is_in = |(block, bits): &(Ipv6Addr, u32)| {
                block.to_bits() >> (128 - bits) == v6.to_bits() >> (128 - bits)
            };
            is_in(&INTERNET_V6) && !SPECIAL_V6.iter().any(is_in)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_outside() {
        for (address, outside) in [
            ("127.0.0.1", false),
            ("127.8.8.8", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("100.64.0.1", false),
            ("100.128.0.1", true),
            ("169.254.169.254", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("198.18.0.1", false),
            ("192.0.0.8", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("93.184.216.34", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.1.1.1", false),
            ("::ffff:93.184.216.34", true),
            ("64:ff9b::7f00:1", false),
            ("64:ff9b::5db8:d822", false),
            ("2002:7f00:1::", false),
            ("2002:5db8:d822::", false),
            ("fe80::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("ff02::1", false),
            ("2001:db8::1", false),
            ("2606:2800:220:1::1", true),
            ("2400:cb00::1", true),
            ("::93.184.216.34", false),
            ("64:ff9b:1::1", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", false),
            ("2001:2::1", false),
            ("2001:10::1", false),
            ("2001:20::1", false),
            ("2001:1ff:ffff::1", false),
            ("2001:200::1", true),
            ("2001:4860:4860::8888", true),
            ("2620:4f:8000::1", false),
            ("2620:4f:8001::1", true),
            ("3fff::1", false),
            ("3fff:fff::1", false),
            ("5f00::1", false),
            ("192.88.99.1", false),
            ("::ffff:192.88.99.1", false),
            ("192.88.98.1", true),
            ("192.31.196.1", false),
            ("192.52.193.1", false),
            ("192.175.48.1", false),
            ("192.0.2.1", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("198.20.0.1", true),
            ("240.0.0.1", false),
        ] {
            assert_eq!(is_outside(address.parse().unwrap()), outside, "{address}");
        }
    }

    #[test]
    fn an_address_is_known_however_it_is_written() {
        for (url, refused) in [
            ("http://127.0.0.1:11434/v1", true),
            ("http://2130706433/v1", true),
            ("http://0x7f.1/v1", true),
            ("http://0177.0.0.1/", true),
            ("http://[::1]:80/", true),
            ("http://[::ffff:169.254.169.254]/", true),
            ("http://localhost:8080", true),
            ("http://LocalHost./", true),
            ("http://a.localhost/", true),
            ("https://api.example.com/v1", false),
            ("https://93.184.216.34/", false),
        ] {
            assert_eq!(address_refusal(NetworkReach::Outside, url).is_some(), refused, "{url}");
            assert_eq!(address_refusal(NetworkReach::Anywhere, url), None, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inward_is_refused_when_it_is_looked_up() {
        let found = OutsideOnly.resolve("localhost".parse().unwrap()).await;
        let words = found.err().unwrap().to_string();
        assert!(words.starts_with("`localhost` leads to ") && words.ends_with(INWARD), "{words}");
    }
}
