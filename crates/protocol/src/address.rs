//! Addresses in the form in which they are shown and stored.

/// The scheme, host, port and path of an address. Parts that may hold a secret are left out: user and password,
/// query, fragment.
pub fn plain_address(address: &str) -> String {
    let (scheme, rest) = match address.find("://") {
        Some(at) => address.split_at(at + 3),
        None => ("", address),
    };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = rest.get(..end).unwrap_or_default();
    // A password may hold a slash: the text before the last `@` is never shown.
    let host = rest.rfind('@').and_then(|at| rest.get(at + 1..)).unwrap_or(rest);
    // A port that is not a number means that this is not an address, but perhaps half a password.
    let authority = host.split('/').next().unwrap_or_default();
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    if !port.ends_with(']') && !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{scheme}…");
    }
    format!("{scheme}{host}")
}

/// The range of hosts that the requests of a client may go to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkReach {
    #[default]
    Anywhere,
    /// Other machines only: neither this one, nor networks that only its neighbours are in.
    Outside,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_queries_are_not_shown() {
        for (address, shown) in [
            ("https://gw/v1", "https://gw/v1"),
            ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/"),
            ("https://user:PASS@gw:8443/v1?api-key=PASS", "https://gw:8443/v1"),
            ("https://PASS@gw/v1#PASS", "https://gw/v1"),
            ("https://user:PA/SS@gw/v1", "https://gw/v1"),
            ("https://user:P?SS@gw/v1", "https://…"),
            ("https://[::1]:8080/v1", "https://[::1]:8080/v1"),
            ("https://[::1]/v1", "https://[::1]/v1"),
            ("user:PASS@gw/v1?PASS", "gw/v1"),
            ("10.0.0.1:11434", "10.0.0.1:11434"),
            ("", ""),
        ] {
            assert_eq!(plain_address(address), shown, "{address}");
        }
    }
}
