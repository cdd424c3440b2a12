//! A check that requests only ever append, on which provider caches depend.

use crate::wires::Wire;

/// Anthropic's cache marks; they move forward and are not part of the conversation.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// Each body without its closing `]}` must be a prefix of the next; the error shows where two part.
pub fn check_prefix(bodies: &[Vec<u8>]) -> Result<(), String> {
    check_prefix_on(Wire::Chat, bodies)
}

/// The same on any wire, marks for the cache left out.
pub fn check_prefix_on(wire: Wire, bodies: &[Vec<u8>]) -> Result<(), String> {
    let unmarked = |body: &Vec<u8>| String::from_utf8_lossy(body).replace(MARK, "").into_bytes();
    let bodies: Vec<Vec<u8>> = bodies.iter().map(unmarked).collect();
    let tail = wire.tail();
    for (number, pair) in bodies.windows(2).enumerate() {
        let (before, after) = (&pair[0], &pair[1]);
        let Some(stem) = before.strip_suffix(tail) else {
            return Err(format!("request {number} does not end with `{}`", String::from_utf8_lossy(tail)));
        };
        if after.starts_with(stem) {
            continue;
        }
        let at = stem.iter().zip(after).take_while(|(a, b)| a == b).count();
        return Err(format!(
            "request {} does not begin with request {number}: they part at byte {at}\n  {number}: …{}\n  {}: …{}",
            number + 1,
            around(stem, at),
            number + 1,
            around(after, at),
        ));
    }
    Ok(())
}

fn around(bytes: &[u8], at: usize) -> String {
    let from = at.saturating_sub(60);
    let to = bytes.len().min(at + 60);
    String::from_utf8_lossy(&bytes[from.min(to)..to]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies(texts: &[&str]) -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn appending_and_asking_again_are_fine() {
        let list = bodies(&[r#"{"m":["a"]}"#, r#"{"m":["a"]}"#, r#"{"m":["a","b"]}"#]);
        assert_eq!(check_prefix(&list), Ok(()));
    }

    #[test]
    fn a_changed_byte_is_shown_with_its_place() {
        let error = check_prefix(&bodies(&[r#"{"m":["a"]}"#, r#"{"m":["x","b"]}"#])).unwrap_err();
        assert!(error.starts_with("request 1 does not begin with request 0: they part at byte 7"), "{error}");
    }

    #[test]
    fn a_body_that_ends_otherwise_is_refused() {
        let error = check_prefix(&bodies(&[r#"{"m":["a"],"n":1}"#, "{}"])).unwrap_err();
        assert_eq!(error, "request 0 does not end with `]}`");
    }
}
