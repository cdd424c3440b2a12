//! Extracts the text of a PDF's pages. Pictures of text stay pictures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lopdf::{Document, LoadOptions};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Pages whose text is extracted at once.
const PAGES: usize = 20;

/// Bytes that one compressed part may expand to: more is not text.
const UNPACKED: usize = 64 << 20;

pub(super) struct Pages {
    /// The texts of the pages, from `first` on.
    pub(super) texts: Vec<String>,
    pub(super) first: usize,
    pub(super) total: usize,
}

/// The time that a document may take, and the stack that its nesting may use.
const PATIENCE: Duration = Duration::from_secs(30);
const STACK: usize = 32 << 20;

/// Pages `first` to `last`, counted from 1, [`PAGES`] at most.
///
/// The parser cannot be stopped, so it runs on a thread of its own that is abandoned if it takes too long: the thread
/// ends when it has finished its input, or with the program.
pub(super) async fn pages(
    content: Vec<u8>,
    first: usize,
    last: Option<usize>,
    cancel: &CancellationToken,
) -> Result<Pages, String> {
    let (sender, receiver) = oneshot::channel();
    let work = move || drop(sender.send(guarded(&content, first, last)));
    let thread = std::thread::Builder::new().name("pdf".to_owned()).stack_size(STACK).spawn(work);
    thread.map_err(|error| error.to_string())?;
    tokio::select! {
        read = receiver => read.unwrap_or_else(|_| Err("its structure is damaged".to_owned())),
        () = tokio::time::sleep(PATIENCE) => Err("it takes too long to read".to_owned()),
        () = cancel.cancelled() => Err("cancelled by the user".to_owned()),
    }
}

fn guarded(content: &[u8], first: usize, last: Option<usize>) -> Result<Pages, String> {
    // The parser meets untrusted files here: a panic in it must affect this call only.
    catch_unwind(AssertUnwindSafe(|| read(content, first, last)))
        .unwrap_or_else(|_| Err("its structure is damaged".to_owned()))
}

fn read(content: &[u8], first: usize, last: Option<usize>) -> Result<Pages, String> {
    let options = LoadOptions { max_decompressed_size: Some(UNPACKED), ..LoadOptions::default() };
    let document = Document::load_mem_with_options(content, options).map_err(|error| error.to_string())?;
    if document.is_encrypted() {
        return Err("it is encrypted".to_owned());
    }
    let numbers: Vec<u32> = document.get_pages().into_keys().collect();
    let count = last.map_or(PAGES, |last| (last + 1).saturating_sub(first)).min(PAGES);
    let wanted = numbers.iter().skip(first - 1).take(count);
    let texts = wanted.map(|number| match document.extract_text_with_limit(&[*number], UNPACKED) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => format!("[the text of this page cannot be read: {error}]"),
    });
    Ok(Pages { texts: texts.collect(), first, total: numbers.len() })
}
