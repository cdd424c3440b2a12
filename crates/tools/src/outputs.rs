//! Outputs of earlier calls, by their handles.
//!
//! `@3.2` is the whole output of the second call of step 3, however much of it the model was shown. Everything that
//! reads a file accepts a handle: it stands for a file of that name in a folder of the session. The file is written
//! from the journal when it is first asked for, so nothing is written without need, and a resumed session has the
//! outputs too.

use std::fmt::{Display, Formatter, Result as Shown};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lathe_blobs::{Blobs, Durable, replace};
use lathe_protocol::Digest;
use serde_json::{Map, Value};

use crate::tool::RunContext;

/// The name of an output: a step, and the number of the call in it, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputHandle {
    pub step: u32,
    pub call: u32,
}

impl Display for OutputHandle {
    fn fmt(&self, f: &mut Formatter<'_>) -> Shown {
        write!(f, "@{}.{}", self.step, self.call)
    }
}

impl FromStr for OutputHandle {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |text: &str| -> Result<u32, ()> {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
            if plain { text.parse().map_err(|_| ()) } else { Err(()) }
        };
        let (step, call) = text.strip_prefix('@').and_then(|rest| rest.split_once('.')).ok_or(())?;
        Ok(Self { step: number(step)?, call: number(call)? })
    }
}

/// An output as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedOutput {
    Text(String),
    Blob(Digest),
}

/// Parameters whose values are names of files.
const PATHS: [&str; 8] =
    ["path", "paths", "file_path", "absolute_path", "dir_path", "notebook_path", "file", "files"];

/// The folder of a session's outputs. It is made with the first of them.
#[derive(Debug, Clone)]
pub struct OutputFiles {
    folder: PathBuf,
}

impl OutputFiles {
    pub fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The file that a handle stands for.
    pub(crate) fn file(&self, handle: OutputHandle) -> PathBuf {
        self.folder.join(handle.to_string())
    }

    fn handle(&self, path: &Path) -> Option<OutputHandle> {
        let name = path.strip_prefix(&self.folder).ok()?.to_str()?;
        name.parse().ok()
    }

    /// Replaces handles in the arguments of a call by the paths of their files. A handle stays if the caller's folder
    /// has a file of that name.
    pub(crate) fn replace_handles(&self, arguments: &mut Map<String, Value>, here: Option<&Path>) {
        let place = |text: &mut String| {
            if let Ok(handle) = text.parse::<OutputHandle>()
                && here.is_none_or(|here| here.join(&*text).symlink_metadata().is_err())
            {
                *text = self.file(handle).display().to_string();
            }
        };
        for (_, value) in arguments.iter_mut().filter(|(name, _)| PATHS.contains(&name.as_str())) {
            match value {
                Value::String(text) => place(text),
                Value::Array(all) => all.iter_mut().for_each(|one| {
                    if let Value::String(text) = one {
                        place(text);
                    }
                }),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
            }
        }
    }

    /// Removes the folder.
    pub(crate) fn discard(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    fn write(&self, handle: OutputHandle, output: RecordedOutput, blobs: &Blobs) -> io::Result<()> {
        let content = match output {
            RecordedOutput::Text(text) => text.into_bytes(),
            RecordedOutput::Blob(digest) => {
                blobs.get(&digest).map_err(io::Error::other)?.ok_or(io::ErrorKind::NotFound)?
            }
        };
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        let found = std::fs::symlink_metadata(&self.folder)?;
        // Other users may have write access to the parent folder, and could create a folder of this name first.
        if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() || found.mode() & 0o077 != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        replace(&self.file(handle), &content, Durable::Nothing)
    }
}

/// Writes the files of the handles that a call is about to read. A handle without an output is skipped: the reader
/// finds that the file does not exist.
pub(crate) async fn provide_outputs(context: &RunContext, reads: &[String]) {
    let Some(outputs) = &context.services.outputs else { return };
    for handle in reads.iter().filter_map(|path| outputs.handle(Path::new(path))) {
        provide_one(context, outputs, handle).await;
    }
}

/// Writes the files of the handles that a shell line names.
pub(crate) async fn provide_outputs_of_line(context: &RunContext, line: &str) {
    let Some(outputs) = &context.services.outputs else { return };
    for handle in handles_in(line) {
        provide_one(context, outputs, handle).await;
    }
}

async fn provide_one(context: &RunContext, outputs: &OutputFiles, handle: OutputHandle) {
    if outputs.file(handle).exists() {
        return;
    }
    let Some(output) = context.ledger.output(handle).await else { return };
    let (outputs, blobs) = (outputs.clone(), context.services.blobs.clone());
    // If the file cannot be written, the reader reports that it does not exist.
    let _ = tokio::task::spawn_blocking(move || outputs.write(handle, output, &blobs)).await;
}

/// The file from which the output of this call will be read.
pub(crate) fn output_file(context: &RunContext) -> Option<PathBuf> {
    context.services.outputs.as_ref().zip(context.handle).map(|(outputs, handle)| outputs.file(handle))
}

/// Handles in a text, each once.
fn handles_in(text: &str) -> Vec<OutputHandle> {
    let mut found = Vec::new();
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    for (at, _) in text.match_indices('@') {
        let rest = text.get(at + 1..).unwrap_or_default();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default().trim_end_matches('.');
        if let Ok(handle) = format!("@{word}").parse::<OutputHandle>()
            && !found.contains(&handle)
        {
            found.push(handle);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_step_and_a_call() {
        for (text, expected) in [
            ("@3.2", Some((3, 2))),
            ("@12.10", Some((12, 10))),
            ("@3", None),
            ("3.2", None),
            ("@3.2.1", None),
            ("@0.1", None),
            ("@03.1", None),
            ("@3.-1", None),
            ("@3.", None),
            ("@99999999999.1", None),
        ] {
            let parsed = text.parse::<OutputHandle>().ok().map(|handle| (handle.step, handle.call));
            assert_eq!(parsed, expected, "{text}");
        }
    }

    #[test]
    fn handles_of_a_line_are_found_wherever_they_stand() {
        let line = "grep x /tmp/o/@3.2; view @3.2 | wc; cat \"$d/@4.1\". me@example.org pkg@1.2.3";
        let names: Vec<String> = handles_in(line).iter().map(OutputHandle::to_string).collect();
        assert_eq!(names, ["@3.2", "@4.1"]);
    }

    #[test]
    fn a_file_of_that_name_is_meant_by_its_name() {
        let here = tempfile::tempdir().unwrap();
        std::fs::write(here.path().join("@1.1"), "").unwrap();
        let outputs = OutputFiles::in_folder("/outputs".into());
        let mut arguments = serde_json::json!({
            "path": "@1.2", "paths": ["@1.1", "@2.1", "x"], "pattern": "@1.2",
        });
        outputs.replace_handles(arguments.as_object_mut().unwrap(), Some(here.path()));
        let expected = serde_json::json!({
            "path": "/outputs/@1.2", "paths": ["@1.1", "/outputs/@2.1", "x"], "pattern": "@1.2",
        });
        assert_eq!(arguments, expected);
    }
}
