//! A file in a form, read as a stream: at most the length of a boundary is held back.

use axum::body::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::error::ApiError;

/// Bytes of the headers of a part.
const HEAD_MAX: usize = 16 * 1024;

/// Bytes of other parts before the file.
const BEFORE_MAX: usize = 64 * 1024;

pub(super) type Pieces = BoxStream<'static, Result<Bytes, ApiError>>;

/// The boundary of a form, if the type says that it is one.
pub(super) fn boundary(kind: &str) -> Option<String> {
    let (name, rest) = kind.split_once(';')?;
    if !name.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let named = rest.split(';').filter_map(|part| part.trim().split_once('='));
    let found =
        named.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("boundary"))?.1.trim_matches('"');
    (!found.is_empty() && found.len() <= 70).then(|| found.to_owned())
}

pub(super) struct Parts {
    body: Pieces,
    /// Bytes that were read and not given yet.
    held: Vec<u8>,
    /// The end of a part: a line break and the boundary.
    end: Vec<u8>,
    is_over: bool,
}

impl Parts {
    pub fn new(body: Pieces, boundary: &str) -> Self {
        // The first boundary has no line break before it, so one is put there.
        Self { body, held: b"\r\n".to_vec(), end: format!("\r\n--{boundary}").into_bytes(), is_over: false }
    }

    /// The name and the content of the first part that is a file.
    pub async fn first_file(mut self) -> Result<(String, Pieces), ApiError> {
        let mut skipped = 0;
        loop {
            // Bytes before the part do not belong to it.
            while let Some(piece) = self.piece().await? {
                skipped += piece.len();
                if skipped > BEFORE_MAX {
                    return Err(ApiError::bad(format!(
                        "The first part of the form must be the file: {BEFORE_MAX} bytes of others came before it."
                    )));
                }
            }
            let head = self.head().await?;
            let Some(head) = head else { return Err(ApiError::bad("The form holds no file.")) };
            if let Some(name) = file_name(&head) {
                let content = futures::stream::unfold(Some(self), |parts| async {
                    let mut parts = parts?;
                    match parts.piece().await {
                        Ok(Some(piece)) => Some((Ok(piece), Some(parts))),
                        Ok(None) => None,
                        Err(error) => Some((Err(error), None)),
                    }
                });
                return Ok((name, content.boxed()));
            }
        }
    }

    async fn more(&mut self) -> Result<(), ApiError> {
        match self.body.next().await {
            Some(piece) => {
                self.held.extend_from_slice(&piece?);
                Ok(())
            }
            None => Err(ApiError::bad("The form breaks off.")),
        }
    }

    /// The next bytes of this part; none at its end, once the boundary was read.
    async fn piece(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            if let Some(at) = find(&self.held, &self.end) {
                if at == 0 {
                    self.held.drain(..self.end.len());
                    return Ok(None);
                }
                return Ok(Some(self.held.drain(..at).collect::<Vec<u8>>().into()));
            }
            // The boundary may have begun in what is held.
            let sure = self.held.len().saturating_sub(self.end.len());
            if sure > 0 {
                return Ok(Some(self.held.drain(..sure).collect::<Vec<u8>>().into()));
            }
            self.more().await?;
        }
    }

    /// The headers of the part that begins; none at the end of the form.
    async fn head(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            if self.held.starts_with(b"--") || self.is_over {
                self.is_over = true;
                return Ok(None);
            }
            if let Some(at) = find(&self.held, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(self.held.get(..at).unwrap_or_default()).into_owned();
                self.held.drain(..at + 4);
                return Ok(Some(head));
            }
            if self.held.len() > HEAD_MAX {
                return Err(ApiError::bad("The form cannot be read."));
            }
            self.more().await?;
        }
    }
}

fn find(held: &[u8], wanted: &[u8]) -> Option<usize> {
    held.windows(wanted.len()).position(|window| window == wanted)
}

/// The last name of the path a form gives for a file.
fn file_name(head: &str) -> Option<String> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("content-disposition:"))?;
    let given = line.split_once("filename=\"")?.1;
    let name = given.split_once('"')?.0;
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
    (!name.is_empty() && name != "." && name != "..").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn taken(form: &str, cut: usize) -> Result<(String, Vec<u8>), String> {
        let pieces: Vec<Result<Bytes, ApiError>> =
            form.as_bytes().chunks(cut).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let parts = Parts::new(futures::stream::iter(pieces).boxed(), "XX");
        let (name, mut content) = parts.first_file().await.map_err(|error| error.detail)?;
        let mut bytes = Vec::new();
        while let Some(piece) = content.next().await {
            bytes.extend_from_slice(&piece.map_err(|error| error.detail)?);
        }
        Ok((name, bytes))
    }

    #[tokio::test]
    async fn a_file_is_found_wherever_the_pieces_are_cut() {
        let form = "--XX\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhello\r\n--XX\r\n\
                    Content-Disposition: form-data; name=\"file\"; filename=\"../a/b.txt\"\r\n\
                    Content-Type: text/plain\r\n\r\none\r\n--X two\r\n--XX--\r\n";
        for cut in [1, 2, 3, 7, 64, 10_000] {
            let (name, content) = taken(form, cut).await.unwrap();
            assert_eq!((name.as_str(), content.as_slice()), ("b.txt", b"one\r\n--X two".as_slice()), "{cut}");
        }
    }

    #[tokio::test]
    async fn a_form_that_breaks_off_or_holds_no_file_is_refused() {
        let head = "--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\nhalf";
        assert_eq!(taken(head, 5).await.unwrap_err(), "The form breaks off.");
        assert_eq!(taken("--XX--\r\n", 5).await.unwrap_err(), "The form holds no file.");
        assert_eq!(taken("nothing", 5).await.unwrap_err(), "The form breaks off.");
    }

    #[tokio::test]
    async fn a_form_that_never_comes_to_its_file_is_not_read_to_its_end() {
        let endless = futures::stream::repeat_with(|| Ok(Bytes::from(vec![b'x'; 1024])));
        let head = Bytes::from("--XX\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n");
        for body in [
            futures::stream::once(async { Ok(head) }).chain(endless).boxed(),
            futures::stream::repeat_with(|| Ok(Bytes::from(vec![b'x'; 1024]))).boxed(),
        ] {
            let Err(error) = Parts::new(body, "XX").first_file().await else { panic!("a file was found") };
            assert_eq!(error.status, 400, "{}", error.detail);
        }
    }

    #[test]
    fn only_a_form_has_a_boundary() {
        assert_eq!(boundary("multipart/form-data; boundary=ab"), Some("ab".to_owned()));
        assert_eq!(boundary("multipart/form-data; boundary=\"a b\""), Some("a b".to_owned()));
        assert_eq!(boundary("application/json; boundary=ab"), None);
        assert_eq!(boundary("multipart/form-data"), None);
    }
}
