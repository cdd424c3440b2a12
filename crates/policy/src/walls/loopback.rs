//! Addresses of this machine: behind walls, `localhost` is the session's own network, in which only its own servers
//! listen.

use crate::guard::operands;
use crate::harm::option_values;
use crate::places::UNKNOWN;

/// A client whose operands are addresses, and its options.
struct Client {
    names: &'static [&'static str],
    /// Letters whose value is the next word, or the rest of the word.
    letters: &'static str,
    /// Long options whose value is the next word.
    long: &'static [&'static str],
    /// Options with which it goes another way than to the address, or takes addresses from elsewhere.
    detours: &'static [&'static str],
}

const CLIENTS: [Client; 5] = [
    Client {
        names: &["curl", "curlie"],
        letters: "AbcCdDeEFHmoPQrtTuUwXyYz",
        long: &[
            "--data",
            "--data-ascii",
            "--data-binary",
            "--data-raw",
            "--data-urlencode",
            "--json",
            "--form",
            "--form-string",
            "--header",
            "--request",
            "--output",
            "--output-dir",
            "--write-out",
            "--max-time",
            "--connect-timeout",
            "--retry",
            "--retry-delay",
            "--retry-max-time",
            "--user",
            "--user-agent",
            "--cookie",
            "--cookie-jar",
            "--dump-header",
            "--referer",
            "--range",
            "--limit-rate",
            "--cacert",
            "--cert",
            "--key",
            "--upload-file",
            "--url-query",
            "--max-redirs",
            "--oauth2-bearer",
        ],
        detours: &[
            "-x",
            "-K",
            "--proxy",
            "--preproxy",
            "--socks",
            "--connect-to",
            "--resolve",
            "--interface",
            "--dns",
            "--doh-url",
            "--unix-socket",
            "--abstract-unix-socket",
            "--config",
        ],
    },
    Client {
        names: &["wget", "wget2"],
        letters: "oOaPtTwQUARDl",
        long: &[
            "--output-document",
            "--output-file",
            "--append-output",
            "--directory-prefix",
            "--timeout",
            "--tries",
            "--header",
            "--post-data",
            "--body-data",
            "--method",
            "--user-agent",
            "--waitretry",
        ],
        detours: &["-e", "-i", "-B", "--execute", "--input-file", "--base", "--config", "--use-proxy"],
    },
    Client {
        names: &["nc", "ncat", "netcat", "telnet"],
        letters: "wqpi",
        long: &[],
        detours: &["-x", "-X", "-s", "--proxy"],
    },
    Client { names: &["ping", "ping6"], letters: "cisWwt", long: &[], detours: &["-I"] },
    Client {
        names: &["ab", "wrk", "hey", "siege", "websocat", "wscat", "grpcurl", "hurl"],
        letters: "cntdTmHzpkvqrA",
        long: &["--connections", "--threads", "--duration", "--header"],
        detours: &["-x", "-X", "-C", "-f", "--proxy", "--variables-file"],
    },
];

/// Clients of databases, which are given the host by an option, in an address, or as `host=…`. With `true`, they go
/// to this machine where no host is named.
const DATABASES: [(&str, bool); 17] = [
    ("psql", false),
    ("pg_dump", false),
    ("pg_dumpall", false),
    ("pg_restore", false),
    ("createdb", false),
    ("dropdb", false),
    ("mysql", false),
    ("mariadb", false),
    ("mysqldump", false),
    ("mysqladmin", false),
    ("mysqlimport", false),
    ("redis-cli", true),
    ("redis-benchmark", true),
    ("mongosh", true),
    ("mongo", true),
    ("mongodump", true),
    ("clickhouse-client", true),
];

/// Tells whether a program of the network surely reaches this machine only.
pub(super) fn stays_on_loopback(name: &str, words: &[&str]) -> bool {
    match name {
        "http" | "https" | "xh" | "xhs" => by_httpie(words),
        _ => match DATABASES.iter().find(|(known, _)| *known == name) {
            Some((_, by_default)) => by_database(words, *by_default),
            None => CLIENTS
                .iter()
                .find(|client| client.names.contains(&name))
                .is_some_and(|client| by_client(client, words)),
        },
    }
}

fn by_client(client: &Client, words: &[&str]) -> bool {
    let Some(given) = addresses(client, words) else { return false };
    // Ports, counts and times.
    let number =
        |word: &&str| word.trim_end_matches(['s', 'm']).split('-').all(|part| part.parse::<u32>().is_ok());
    let listens = client.names.contains(&"nc") && words.iter().any(|word| is_short(word, 'l'));
    let hosts: Vec<&str> = given.into_iter().filter(|word| !number(word)).collect();
    (listens || !hosts.is_empty()) && hosts.iter().all(|host| is_loopback(host))
}

fn is_short(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

/// The operands, and the addresses that an option names. `None` where it is not known which words they are.
fn addresses<'w>(client: &Client, words: &[&'w str]) -> Option<Vec<&'w str>> {
    let (mut given, mut rest) = (Vec::new(), words.iter().copied());
    while let Some(word) = rest.next() {
        let long = word.starts_with("--");
        let detour = |detour: &&&str| match detour.strip_prefix("--") {
            Some(_) => long && word.len() > 2 && (word.starts_with(**detour) || detour.starts_with(word)),
            None => false,
        };
        if client.detours.iter().any(|known| detour(&known)) {
            return None;
        }
        if long {
            match word.split_once('=') {
                Some(("--url", address)) => given.push(address),
                Some(_) => {}
                None if word == "--url" => given.extend(rest.next()),
                None if client.long.contains(&word) => drop(rest.next()),
                None => {}
            }
            continue;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            given.push(word);
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let option = format!("-{letter}");
            if client.detours.contains(&option.as_str()) || letter == UNKNOWN {
                return None;
            }
            if client.letters.contains(letter) {
                if at + letter.len_utf8() == letters.len() {
                    rest.next();
                }
                break;
            }
        }
    }
    Some(given)
}

/// `http POST localhost:3000/a name=x`: after the method, the first operand is the address.
fn by_httpie(words: &[&str]) -> bool {
    let detour = |word: &&str| {
        word.starts_with("--proxy") || word.starts_with("--unix") || word.starts_with("--resolve")
    };
    if words.iter().any(detour) {
        return false;
    }
    let mut given = operands(words).into_iter();
    let method = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let first = given.next();
    let address = if first.as_ref().is_some_and(method) { given.next() } else { first };
    address.is_some_and(|address| address.starts_with(':') || is_loopback(address))
}

fn by_database(words: &[&str], by_default: bool) -> bool {
    let mut hosts = option_values(words, &["-h", "--host", "--hostname"]);
    hosts.extend(words.iter().filter(|word| word.contains("://")));
    for word in words {
        let parts = word.split([' ', '?', '&']);
        hosts.extend(
            parts.filter_map(|part| part.strip_prefix("host=").or_else(|| part.strip_prefix("hostaddr="))),
        );
    }
    let hidden = |word: &&str| word.contains(UNKNOWN) || word.contains("service=");
    let open = words.iter().any(hidden) || words.iter().any(|word| is_short(word, 'u') && by_default);
    match hosts.as_slice() {
        [] => by_default && !open,
        hosts => {
            !words.iter().any(|word| word.contains("service=")) && hosts.iter().all(|host| is_loopback(host))
        }
    }
}

/// Tells whether an address is surely one of this machine.
pub(super) fn is_loopback(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains(|c: char| c.is_control() || c.is_whitespace() || "\\,".contains(c)) {
        return false;
    }
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(inside) => inside.split(']').next().unwrap_or_default(),
        None if host.matches(':').count() > 1 => host,
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.to_ascii_lowercase();
    let is_127 = || {
        let parts: Vec<&str> = host.split('.').collect();
        parts.len() == 4
            && parts.first() == Some(&"127")
            && parts.iter().all(|part| part.parse::<u8>().is_ok())
    };
    matches!(host.as_str(), "localhost" | "::1" | "0.0.0.0") || host.ends_with(".localhost") || is_127()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_told_from_others() {
        for address in [
            "localhost",
            "http://localhost:3000/a?b=http://x.org",
            "HTTP://LOCALHOST/",
            "127.0.0.1:80",
            "http://[::1]:8080/",
            "::1",
            "http://u:p@127.0.0.2/",
            "api.localhost:3000",
            "0.0.0.0:8000",
            "postgres://me:pw@localhost:5432/db",
            "http://localhost:3000/\u{1}",
        ] {
            assert!(is_loopback(address), "{address}");
        }
        for address in [
            "http://example.org/",
            "http://localhost@example.org/",
            "http://localhost.example.org",
            "http://example.org/localhost",
            "http://\u{1}/localhost",
            "http://localhost:\u{1}/",
            "127.0.0.1.example.org",
            "http://localhost\\@example.org",
            "1270.0.0.1",
            "",
        ] {
            assert!(!is_loopback(address), "{address}");
        }
    }

    #[test]
    fn clients_stay_if_every_address_does() {
        let stays = |line: &'static str| {
            let words: Vec<&str> = line.split(' ').collect();
            stays_on_loopback(words[0], &words[1..])
        };
        for line in [
            "curl localhost",
            "curl -sS -X POST -d {} http://localhost:8080/a",
            "curl -fsSo out --max-time 5 http://127.0.0.1/",
            "curl --url http://[::1]/ -H a:b",
            "wget -qO- http://localhost/",
            "nc -z localhost 5432",
            "nc -l 8080",
            "ping -c 1 localhost",
            "http POST :3000/a b=c",
            "http localhost:3000",
            "psql -h localhost -U me -c x",
            "psql postgres://a:b@127.0.0.1/c",
            "redis-cli -p 6379 ping",
            "ab -n 100 -c 10 http://localhost/",
        ] {
            assert!(stays(line), "{line}");
        }
        for line in [
            "curl example.org",
            "curl localhost example.org",
            "curl -x example.org:80 localhost",
            "curl --proxy http://e.org localhost",
            "curl -sxe.org:80 localhost",
            "curl -K conf localhost",
            "curl --connect-to ::e.org: http://localhost/",
            "curl",
            "curl -o localhost",
            "wget -i list localhost",
            "nc example.org 80",
            "psql",
            "psql -h db.example.org",
            "psql -h localhost host=db.example.org",
            "redis-cli -h example.org",
            "redis-cli -u redis://example.org",
            "http example.org localhost",
            "ssh localhost",
        ] {
            assert!(!stays(line), "{line}");
        }
    }
}
