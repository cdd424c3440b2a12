//! Turns one word of the source into the word that bash makes of it.
//!
//! The grammar only says where a word begins and ends and where an expansion stands in it. The quotes are read here
//! again, character by character as bash reads them, and everything the grammar says is checked on the way: where the
//! two disagree, the word is an error and the caller asks. So a fault of the grammar can make Lathe ask too often,
//! but cannot make it read one program where bash runs another.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::braces::{self, BraceExpansion};
use crate::script::{Piece, Word};

/// An expansion inside a word, as the grammar found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: SpanKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Name,
    Parameter,
    Command,
    Process,
    Arithmetic,
}

/// The text of a longer substitution is not kept, so its output stays unknown.
const SHORT: usize = 4096;

type Scanned<T> = Result<T, &'static str>;

/// Tells whether a character means nothing to bash but itself.
pub(crate) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b',' | b'%' | b'+' | b'@' | b'^')
}

/// A word without anything to expand in it, as most words are.
pub(crate) fn plain(raw: &str) -> Option<Word> {
    if raw.bytes().all(is_plain) {
        return Some(Word::text(raw));
    }
    let inner = raw.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inner.contains('\'')).then(|| Word::text(inner))
}

/// The words that `source[start..end]` stands for: one, or several where braces expand.
pub(crate) fn words(source: &str, start: usize, end: usize, spans: &[Span]) -> Scanned<Vec<Word>> {
    let raw = source.get(start..end).ok_or("a word outside of the text")?;
    if raw.contains('{')
        && let Some(masked) = masked(raw, start, spans)
    {
        match braces::expand_braces(&masked) {
            BraceExpansion::Nothing => {}
            BraceExpansion::Words(parts) => {
                return parts.iter().map(|part| unmasked(part, raw, start, spans)).collect();
            }
            BraceExpansion::TooMany => return Ok(vec![Word::of(Piece::Brace { endless: true })]),
        }
    }
    Ok(vec![Scan::new(source, start, end, spans).word()?])
}

/// Characters that stand for the expansions of a word, one for each, while its braces are expanded.
const MASKS: RangeInclusive<char> = '\u{F0000}'..='\u{FFFFD}';

/// The word with a mask for each of its expansions: bash expands braces before them.
fn masked<'t>(raw: &'t str, start: usize, spans: &[Span]) -> Option<Cow<'t, str>> {
    if spans.is_empty() {
        return Some(Cow::Borrowed(raw));
    }
    if raw.contains(|c| MASKS.contains(&c)) {
        return None;
    }
    let (mut out, mut at) = (String::new(), 0);
    for (span, mask) in spans.iter().zip(MASKS) {
        let begin = span.start.checked_sub(start)?;
        // A span of another word, or one inside of another.
        if begin < at || span.end - start > raw.len() {
            return None;
        }
        out.push_str(raw.get(at..begin)?);
        out.push(mask);
        at = span.end - start;
    }
    out.push_str(raw.get(at..)?);
    (spans.len() <= MASKS.count()).then_some(Cow::Owned(out))
}

/// One of the words that braces make, with its expansions in place of their masks.
fn unmasked(part: &str, raw: &str, start: usize, spans: &[Span]) -> Scanned<Word> {
    if spans.is_empty() {
        return Scan::new(part, 0, part.len(), &[]).word();
    }
    let (mut text, mut moved): (String, Vec<Span>) = (String::new(), Vec::new());
    for c in part.chars() {
        let span = u32::from(c).checked_sub(u32::from(*MASKS.start()));
        let span = span.and_then(|index| spans.get(usize::try_from(index).ok()?));
        match span.filter(|_| MASKS.contains(&c)) {
            None => {
                // `{a,$b}c`: bash reads the name `bc`.
                let joins = c.is_ascii_alphanumeric() || c == '_';
                if let Some(last) = moved.last_mut().filter(|last| joins && last.end == text.len())
                    && last.kind == SpanKind::Name
                    && text
                        .as_bytes()
                        .get(last.start + 1)
                        .is_some_and(|c| c.is_ascii_alphabetic() || *c == b'_')
                {
                    last.end += 1;
                }
                text.push(c);
            }
            Some(span) => {
                let begin = text.len();
                text.push_str(raw.get(span.start - start..span.end - start).unwrap_or_default());
                moved.push(Span { start: begin, end: text.len(), kind: span.kind });
            }
        }
    }
    Scan::new(&text, 0, text.len(), &moved).word()
}

/// A word in which blanks and braces are plain text: the body of a heredoc whose delimiter is not quoted.
pub(crate) fn body(source: &str, start: usize, end: usize, spans: &[Span]) -> Scanned<Word> {
    let mut scan = Scan::new(source, start, end, spans);
    while scan.peek().is_some() {
        scan.in_quotes(false)?;
    }
    Ok(scan.word)
}

struct Scan<'a> {
    source: &'a str,
    start: usize,
    at: usize,
    end: usize,
    spans: &'a [Span],
    word: Word,
}

impl<'a> Scan<'a> {
    fn new(source: &'a str, start: usize, end: usize, spans: &'a [Span]) -> Self {
        Self { source, start, at: start, end, spans, word: Word::default() }
    }

    fn peek(&self) -> Option<char> {
        self.source.get(self.at..self.end)?.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn rest(&self) -> &'a str {
        self.source.get(self.at..self.end).unwrap_or("")
    }

    fn word(mut self) -> Scanned<Word> {
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.next();
                    match self.next() {
                        Some('\n') | None => return Err("a line is continued inside a word"),
                        Some(c) => self.word.push_char(c),
                    }
                }
                '\'' => {
                    self.next();
                    let length = self.rest().find('\'').ok_or("a quote without its end")?;
                    self.word.push_text(self.rest().get(..length).unwrap_or(""));
                    self.at += length + 1;
                }
                '"' => {
                    self.next();
                    let pieces = self.word.pieces.len();
                    loop {
                        match self.peek() {
                            None => return Err("a quote without its end"),
                            Some('"') => break,
                            Some(_) => self.in_quotes(true)?,
                        }
                    }
                    self.next();
                    // Quotes around nothing make a word nevertheless.
                    if self.word.pieces.len() == pieces {
                        self.word.push_text("");
                    }
                }
                '$' | '`' => self.dollar(false)?,
                '<' | '>' => {
                    let inner = bracketed_text(self.spanned(SpanKind::Process)?.get(1..).unwrap_or(""));
                    self.word.pieces.push(Piece::Process(inner));
                }
                ' ' | '\t' | '\n' | '|' | '&' | ';' | '(' | ')' => {
                    return Err("the end of a word is not where the grammar sees it");
                }
                '#' if self.at == self.start => return Err("a comment read as a word"),
                '*' | '?' => {
                    self.next();
                    self.word.pieces.push(Piece::Glob(c));
                }
                '[' if self.end - self.start > 1 => {
                    self.next();
                    self.word.pieces.push(Piece::Glob(c));
                }
                '~' if self.tilde_here() => {
                    self.next();
                    let user: String = self
                        .rest()
                        .chars()
                        .take_while(|c| c.is_alphanumeric() || "_-+.".contains(*c))
                        .collect();
                    self.at += user.len();
                    self.word.pieces.push(Piece::Tilde(user));
                }
                '{' if braces::may_begin(self.rest()) => {
                    self.next();
                    self.word.pieces.push(Piece::Brace { endless: false });
                }
                c => {
                    self.next();
                    self.word.push_char(c);
                }
            }
        }
        Ok(self.word)
    }

    /// Tells whether bash expands a tilde here: at the beginning, and after `=` and `:` in a word that resembles an
    /// assignment.
    fn tilde_here(&self) -> bool {
        let before = self.source.get(self.start..self.at).unwrap_or("");
        before.is_empty() || (before.contains('=') && before.ends_with(['=', ':']))
    }

    /// Reads one character or expansion inside double quotes, or in the body of a heredoc, where a quote is a
    /// character.
    fn in_quotes(&mut self, quotes: bool) -> Scanned<()> {
        match self.peek() {
            Some('\\') => {
                self.next();
                match self.peek() {
                    // Bash joins the lines before it searches for expansions: `"$\` and `(x)"` in the next line is
                    // one.
                    Some('\n') => return Err("a line is continued inside quotes"),
                    Some(c) if matches!(c, '$' | '`' | '\\') || (c == '"' && quotes) => {
                        self.next();
                        self.word.push_char(c);
                    }
                    Some(_) | None => self.word.push_text("\\"),
                }
            }
            Some('$' | '`') => self.dollar(true)?,
            Some(c) => {
                self.next();
                self.word.push_char(c);
            }
            None => {}
        }
        Ok(())
    }

    fn dollar(&mut self, quoted: bool) -> Scanned<()> {
        let rest = self.rest();
        self.word.splits |= !quoted;
        if rest.starts_with('`') || rest.starts_with("$`") {
            return self.substitution();
        }
        if rest.starts_with("$((") || rest.starts_with("$[") {
            let inner = self.spanned(SpanKind::Arithmetic)?;
            let constant = inner.chars().all(|c| c.is_ascii_digit() || " +-*/%()[]$<>=!&|^~".contains(c));
            self.word.pieces.push(Piece::Arithmetic { constant });
            return Ok(());
        }
        if rest.starts_with("$(") {
            return self.substitution();
        }
        if rest.starts_with("${") {
            let inner = self.spanned(SpanKind::Parameter)?;
            let piece = parameter(inner.get(2..inner.len().saturating_sub(1)).unwrap_or(""), quoted);
            self.word.pieces.push(piece);
            return Ok(());
        }
        if rest.starts_with("$\"") && !quoted {
            // A translation may be another text: it is asked about, and this text is one that it may be.
            self.next();
            self.word.pieces.push(Piece::Operator { name: "\"".into(), how: Box::new("-".to_owned()) });
            return Ok(());
        }
        if rest.starts_with("$'") && !quoted {
            self.at += 2;
            return self.ansi();
        }
        let name = name_of(rest.get(1..).unwrap_or(""));
        if name.is_empty() {
            self.next();
            self.word.push_text("$");
            return Ok(());
        }
        let end = self.at + 1 + name.len();
        self.spanned(SpanKind::Name)?;
        if self.at != end {
            return Err("a variable that the grammar reads differently");
        }
        self.word.pieces.push(Piece::Variable { name: name.into(), quoted });
        Ok(())
    }

    fn substitution(&mut self) -> Scanned<()> {
        let inner = bracketed_text(self.spanned(SpanKind::Command)?.trim_start_matches('$'));
        self.word.pieces.push(Piece::Substitution(inner));
        Ok(())
    }

    /// Skips an expansion that the grammar and this reading both see here.
    fn spanned(&mut self, kind: SpanKind) -> Scanned<&'a str> {
        let index = self.spans.partition_point(|span| span.start < self.at);
        let span = self
            .spans
            .get(index)
            .filter(|span| span.start == self.at && span.kind == kind && span.end <= self.end)
            .ok_or("an expansion that the grammar does not see")?;
        let inner = self.source.get(span.start..span.end).unwrap_or("");
        self.at = span.end;
        Ok(inner)
    }

    /// Reads `$'…'`, after its beginning.
    fn ansi(&mut self) -> Scanned<()> {
        self.word.push_text("");
        loop {
            let c = self.next().ok_or("a quote without its end")?;
            match c {
                '\'' => return Ok(()),
                '\\' => {
                    let c = self.next().ok_or("a quote without its end")?;
                    let decoded = match c {
                        'a' => '\u{7}',
                        'b' => '\u{8}',
                        'e' | 'E' => '\u{1b}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        'v' => '\u{b}',
                        '\\' | '\'' | '"' | '?' => c,
                        _ if gives_nul(self.source.get(self.at - c.len_utf8()..self.end).unwrap_or("")) => {
                            return self.cut_off();
                        }
                        'x' => self.digits(16, 2)?,
                        'u' => self.digits(16, 4)?,
                        'U' => self.digits(16, 8)?,
                        '0'..='7' => {
                            self.at -= 1;
                            self.digits(8, 3)?
                        }
                        _ => return Err("an escape that is not known"),
                    };
                    self.word.push_char(decoded);
                }
                c => self.word.push_char(c),
            }
        }
    }

    /// Skips the rest of a `$'…'` after a NUL, which ends its value, though not the word.
    fn cut_off(&mut self) -> Scanned<()> {
        loop {
            match self.next().ok_or("a quote without its end")? {
                '\'' => return Ok(()),
                '\\' => {
                    self.next();
                }
                _ => {}
            }
        }
    }

    fn digits(&mut self, radix: u32, most: usize) -> Scanned<char> {
        let digits: String = self.rest().chars().take(most).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        let number = u32::from_str_radix(&digits, radix).map_err(|_| "an escape without digits")?;
        // Bytes above ASCII form characters only together with their neighbours, and NUL cuts the word off.
        let plain = (number > 0 && number < 0x80) || most > 3;
        char::from_u32(number)
            .filter(|_| plain)
            .filter(|c| *c != '\0')
            .ok_or("an escape for a part of a character")
    }
}

/// The text between the brackets around it, if it is short.
fn bracketed_text(text: &str) -> Option<Box<str>> {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    (inner.len() <= SHORT).then(|| inner.into())
}

/// A name, a single digit or a special parameter at the beginning of the text.
fn name_of(text: &str) -> &str {
    let mut chars = text.chars();
    match chars.next() {
        Some(c) if c.is_ascii_alphabetic() || c == '_' => {
            let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
            text.get(..end).unwrap_or("")
        }
        Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => text.get(..1).unwrap_or(""),
        _ => "",
    }
}

/// The piece for the text between `${` and `}`.
fn parameter(inner: &str, quoted: bool) -> Piece {
    // `${!name}`: the variable that another one names.
    if let Some(rest) = inner.strip_prefix('!').filter(|rest| !name_of(rest).is_empty()) {
        let (name, how) = rest.split_at(name_of(rest).len());
        return Piece::Operator { name: format!("!{name}").into(), how: Box::new(how.to_owned()) };
    }
    let name = name_of(inner);
    let rest = inner.get(name.len()..).unwrap_or("");
    if rest.is_empty() && !name.is_empty() {
        return Piece::Variable { name: name.into(), quoted };
    }
    Piece::Operator { name: name.into(), how: Box::new(rest.to_owned()) }
}

/// Tells whether an escape gives a NUL; the text begins after its backslash.
fn gives_nul(text: &str) -> bool {
    let (radix, most, skip) = match text.chars().next() {
        Some('x') => (16, 2, 1),
        Some('u') => (16, 4, 1),
        Some('U') => (16, 8, 1),
        Some('0'..='7') => (8, 3, 0),
        Some('c') => return text.starts_with("c@"),
        _ => return false,
    };
    let digits: String = text.chars().skip(skip).take(most).take_while(|c| c.is_digit(radix)).collect();
    // Three octal digits may give more than a byte holds.
    u32::from_str_radix(&digits, radix).is_ok_and(|number| number == 0 || (radix == 8 && number & 0xff == 0))
}

/// Tells whether a word may hold an escape that gives a NUL.
pub(crate) fn may_cut(raw: &str) -> bool {
    raw.contains("$'") && raw.match_indices('\\').any(|(at, _)| gives_nul(raw.get(at + 1..).unwrap_or("")))
}
