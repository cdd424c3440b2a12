//! A small strict reader of markup: what a browser would take for a tag must be one this crate writes.

/// A tag with its attributes, or a piece of text between tags.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Open { name: &'a str, attributes: Vec<(&'a str, &'a str)> },
    Close(&'a str),
    Text(&'a str),
}

const VOID: [&str; 3] = ["!doctype", "meta", "link"];

/// Splits a page and checks that every tag is closed. The content of style and script is one piece of text.
#[track_caller]
pub fn read(page: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while !rest.is_empty() {
        let raw = matches!(open.last(), Some(&"style" | &"script"));
        let end = if raw { rest.find("</") } else { rest.find('<') };
        let (text, tag) = rest.split_at(end.unwrap_or(rest.len()));
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        let Some(tag) = tag.strip_prefix('<') else { break };
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        assert!(!tag.contains('<'), "a tag in a tag: {tag}");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in order");
            pieces.push(Piece::Close(name));
            continue;
        }
        let empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if !empty && !VOID.contains(&name) {
            open.push(name);
        }
        pieces.push(Piece::Open { name, attributes: attributes_of(attributes) });
    }
    assert_eq!(open, Vec::<&str>::new(), "all tags are closed");
    pieces
}

fn attributes_of(mut text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        if text.is_empty() {
            return found;
        }
        match text.split_once("=\"") {
            Some((name, rest)) if !name.contains(' ') => {
                let (value, rest) = rest.split_once('"').expect("a value ends");
                found.push((name, value));
                text = rest;
            }
            _ => {
                let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
                found.push((name, ""));
                text = rest;
            }
        }
    }
}
