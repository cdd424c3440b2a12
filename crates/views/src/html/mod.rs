//! A session as one self-contained HTML page.
//!
//! Style and script are inline, charts are SVG, and no font, image or link leads elsewhere; a content security policy
//! tells the browser so. Everything folds with `<details>`, so the page works with the keyboard and without its
//! script, which only opens and closes all steps at once.

mod charts;
mod diffs;
mod escape;
mod head;
mod parts;
mod steps;

use std::fmt::Write as _;

use lathe_protocol::{Digest, Event, Timestamp};

use crate::cost::Prices;
use crate::messages::{Language, Say};
use crate::session::SessionView;
use crate::time::LocalTime;
use crate::wire::{masked_bytes, masked_events};
use escape::{Attr, EscapedText};

/// Reads a blob; none if it is not there any more.
pub type ReadBlob<'a> = &'a dyn Fn(&Digest) -> Option<Vec<u8>>;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The live branch of a session as one page, with the prices that come with Lathe and times in UTC. A page is made to be
/// passed on: what looks like a secret is masked in it, in contents of files too.
pub fn html(events: &[Event], blobs: ReadBlob<'_>, language: Language) -> String {
    let events = masked_events(events);
    let read = |digest: &Digest| blobs(digest).map(masked_bytes);
    Page::new(&events, &read).language(language).html()
}

/// A page with choices.
pub struct Page<'a> {
    session: SessionView<'a>,
    blobs: ReadBlob<'a>,
    language: Language,
    prices: Prices,
    time: Option<LocalTime<'a>>,
}

impl<'a> Page<'a> {
    pub fn new(events: &'a [Event], blobs: ReadBlob<'a>) -> Self {
        Self {
            session: SessionView::of(events),
            blobs,
            language: Language::default(),
            prices: Prices::built_in(),
            time: None,
        }
    }

    pub fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Shows times with this function instead of in UTC.
    pub fn time(mut self, time: &'a dyn Fn(Timestamp) -> String) -> Self {
        self.time = Some(time);
        self
    }

    pub fn html(&self) -> String {
        let mut out = String::with_capacity(64 * 1024);
        // Writing to a String cannot fail; so here and in the other parts of the page.
        let _ = write!(
            out,
            "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
            self.language.tag(),
            Attr(&parts::short(self.title(), 80)),
        );
        self.head(&mut out);
        self.charts(&mut out);
        self.changed_files(&mut out);
        self.runs(&mut out);
        let _ = write!(
            out,
            "<footer>{}</footer>\n</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            EscapedText(self.say(Say::Contains)),
        );
        out
    }

    fn say(&self, word: Say) -> &'static str {
        word.text(self.language)
    }

    /// The title it was given, or the first task.
    fn title(&self) -> &'a str {
        self.session.title.map(str::trim).filter(|title| !title.is_empty()).unwrap_or_else(|| self.task())
    }

    /// The first task.
    fn task(&self) -> &'a str {
        let task = self.session.runs.first().map(|run| run.task.trim());
        task.filter(|task| !task.is_empty()).unwrap_or(self.say(Say::NoTask))
    }

    fn when(&self, at: Timestamp) -> String {
        match self.time {
            Some(time) => time(at),
            None => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        }
    }
}
