//! The addresses that a request may go to.
//!
//! The user's own configuration names the service, so a private network is allowed: many services exist only there. A
//! *name* may never lead to an address for communication between machines (link-local, where clouds keep credentials),
//! because no user would name such a service, and the owner of a name can make it point anywhere. A user who
//! really wants such an address writes the address itself.

use std::net::{IpAddr, SocketAddr};

use crate::error::DocumentError;

/// The permitted addresses of a host.
pub(crate) async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, DocumentError> {
    let refused = |reason: String| DocumentError::Address { host: host.to_owned(), reason };
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = tokio::net::lookup_host((host, port)).await.map_err(|error| refused(error.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    if found.is_empty() {
        return Err(refused("it has no address".to_owned()));
    }
    match found.iter().find(|address| is_inward(address.ip())) {
        Some(inward) => Err(refused(format!(
            "its name leads to {}, which is for machines among themselves; if you mean it, write the address into `[online] base_url`",
            inward.ip()
        ))),
        None => Ok(found),
    }
}

/// Tells whether no name of a service may lead to an address.
fn is_inward(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast(),
        IpAddr::V6(v6) => {
            let metadata = v6.segments()[0] == 0xfd00 && v6.segments()[1] == 0x0ec2;
            v6.is_unicast_link_local() || v6.is_unspecified() || v6.is_multicast() || metadata
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_and_metadata_addresses_are_inward() {
        for (address, inward) in [
            ("169.254.169.254", true),
            ("169.254.1.1", true),
            ("::ffff:169.254.169.254", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("0.0.0.0", true),
            ("::", true),
            ("224.0.0.1", true),
            ("255.255.255.255", true),
            ("10.0.0.1", false),
            ("192.168.1.1", false),
            ("127.0.0.1", false),
            ("93.184.216.34", false),
            ("2606:2800:220:1::1", false),
        ] {
            assert_eq!(is_inward(address.parse().unwrap()), inward, "{address}");
        }
    }

    #[tokio::test]
    async fn an_address_that_is_written_is_meant() {
        assert_eq!(addresses("169.254.169.254", 80).await.unwrap().len(), 1);
        assert_eq!(addresses("[::1]", 80).await.unwrap(), ["[::1]:80".parse().unwrap()]);
    }
}
