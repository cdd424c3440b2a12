//! Where a client may go.
//!
//! Whoever sits at this machine may name any server, also one on it. Whoever only reaches a server of ours may not: such an
//! address would let them speak to what only this machine can reach. For them a host must lead outside, and it is looked at
//! where the connection is made, by the lookup that the connection itself uses, so a name cannot mean one thing when it is
//! checked and another a moment later.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Where the requests of a client may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    #[default]
    Anywhere,
    /// Not to this machine, nor to networks that only its neighbours are in.
    Outside,
}

const INWARD: &str = "is an address of this machine or its own networks";

impl Reach {
    /// Why a server of this address cannot be asked. A name may still turn out to lead inward when it is looked up.
    pub fn refuses(self, base_url: &str) -> Option<String> {
        if self == Reach::Anywhere {
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

    pub(crate) fn limit(self, client: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        match self {
            Reach::Anywhere => client,
            // A proxy would look the name up itself.
            Reach::Outside => client.no_proxy().dns_resolver(Arc::new(OutsideOnly)),
        }
    }
}

/// Looks names up, and refuses those of which any address is inward.
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

/// Whether an address is one of the internet's, however it is written.
fn is_outside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_outside_v4(v4),
        IpAddr::V6(v6) => match embedded(v6) {
            Some(v4) => is_outside_v4(v4),
            // What is not in use by the internet is `2000::/3`'s complement: loopback, local, link-local, multicast, unassigned.
            None => {
                v6.segments()[0] & 0xe000 == 0x2000
                    && !(v6.segments()[0] == 0x2001 && v6.segments()[1] == 0x0db8)
            }
        },
    }
}

fn is_outside_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let tests = a == 198 && (b == 18 || b == 19);
    let assigned = a == 192 && b == 0 && c == 0;
    !(v4.is_loopback()
        || v4.is_private()
        || v4.is_link_local()
        || v4.is_documentation()
        || a == 0
        || a >= 224
        || shared
        || tests
        || assigned)
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, by NAT64, or by 6to4.
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = v6.segments();
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(of(high, low)),
        (0, 0, 0, 0, 0, 0) => Some(of(high, low)),
        (0x2002, ..) => Some(of(b, c)),
        _ => None,
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
            ("64:ff9b::5db8:d822", true),
            ("2002:7f00:1::", false),
            ("2002:5db8:d822::", true),
            ("fe80::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("ff02::1", false),
            ("2001:db8::1", false),
            ("2606:2800:220:1::1", true),
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
            assert_eq!(Reach::Outside.refuses(url).is_some(), refused, "{url}");
            assert_eq!(Reach::Anywhere.refuses(url), None, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inward_is_refused_when_it_is_looked_up() {
        let found = OutsideOnly.resolve("localhost".parse().unwrap()).await;
        let words = found.err().unwrap().to_string();
        assert!(words.starts_with("`localhost` leads to ") && words.ends_with(INWARD), "{words}");
    }
}
