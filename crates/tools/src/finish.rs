//! Turns the outcome of a run into the one result that the journal records.

use std::borrow::Cow;
use std::sync::Arc;

use lathe_blobs::BlobError;
use lathe_changes::TreeChange;
use lathe_policy::Disk as _;
use lathe_protocol::{
    Attachment, CHANGED_BY_OTHERS, CallFinished, CallId, Change, Digest, Raw, ToolError, ToolErrorKind,
    Truncation,
};
use lathe_redact::Redactor;
use serde_json::Value;

use crate::bash::split_cap;
use crate::faces::Voice;
use crate::files::syntax;
use crate::line::LocalDisk;
use crate::outcome::{AttachedContent, Data, Outcome, ShellData};
use crate::outputs::OutputHandle;
use crate::services::Services;

/// Words the outcome for the model and stores the content that the journal names.
pub(crate) async fn finish(
    services: &Arc<Services>,
    name: &str,
    voice: Voice,
    outcome: Outcome,
    by: CallId,
    handle: Option<OutputHandle>,
) -> CallFinished {
    let Outcome {
        mut data,
        changes,
        files,
        between_lines: _,
        unrecorded,
        not_undoable,
        others,
        kept,
        broken,
        seen,
        memory,
        attached,
        left_out,
        notes,
    } = outcome;
    let redactor = &services.redactor;
    if let Ok(data) = &mut data {
        data.redact(redactor);
    }
    let mut finished = match &data {
        Ok(data) => CallFinished {
            name: name.to_owned(),
            text: redactor.redact_text(&(voice.render)(data, voice.cap)).into_owned(),
            error: data.failure(),
            data: Raw::from_serialize(&redact_value(data.summary(), services)).ok(),
            truncated: None,
            changes: Vec::new(),
            not_undoable: Vec::new(),
            others: Vec::new(),
            broken: Vec::new(),
            seen,
            attachments: Vec::new(),
            memory,
            review: match data {
                Data::Reviewed(reviewed) => Some(reviewed.clone()),
                _ => None,
            },
            took_ms: 0,
        },
        Err(problem) => CallFinished {
            seen,
            memory,
            ..CallFinished::failed(name, problem.kind(), redactor.redact_text(&(voice.words)(problem)))
        },
    };
    if let Ok(Data::Text(text)) = &data
        && text.len() > voice.cap
        && let Ok(Some(blob)) = store(services, Some(text.clone().into_bytes())).await
    {
        let total = text.len() as u64;
        finished.truncated = Some(Truncation { blob, shown: voice.cap as u64, total, kept: total });
        if let Some(handle) = handle {
            finished.text += &format!("\n[The whole output is {handle}: read it by that name.]");
        }
    }
    if let Ok(Data::Shell(shell)) = data {
        let file = shell.whole.as_ref().map(|file| file.display().to_string());
        finished.truncated = store_whole_output(services, shell, voice.cap).await;
        if let (Some(_), Some(handle), Some(file)) = (&finished.truncated, handle, file)
            && !finished.text.contains(&file)
        {
            finished.text +=
                &format!("\n[The whole output is {handle}: read it by that name, or as {file}.]");
        }
    }
    for attached in attached {
        attach(services, &mut finished, attached).await;
    }
    finished.not_undoable = not_undoable.iter().map(|text| redactor.redact_text(text).into_owned()).collect();
    for words in &finished.not_undoable {
        finished.text += &format!("\n[Cannot be taken back: {words}]");
    }
    finished.others = others.iter().map(|path| redactor.redact_text(path).into_owned()).collect();
    if !finished.others.is_empty() {
        let (count, named) = (finished.others.len(), finished.others.iter().take(NAMED));
        let mut named = named.map(String::as_str).collect::<Vec<_>>().join(", ");
        if count > NAMED {
            named += &format!(" and {} more", count - NAMED);
        }
        finished.text += &format!("\n{CHANGED_BY_OTHERS} {named}. Leave it as it is.]");
    }
    finished.changes = journal_changes(changes, &by, redactor);
    finished.text += &syntax::new_error_lines(services, &files).await;
    if left_out > 0 {
        finished.text += &format!("\n({})", crate::files::hidden::left_out_note(left_out));
    }
    for note in notes {
        finished.text += &format!("\n({note})");
    }
    let root = services.workspace.local().map(|tree| LocalDisk.real(tree.root()));
    for words in
        services.unread.take_unreported(&root.unwrap_or_else(|| services.workspace.root().to_owned()))
    {
        finished.text += &format!("\n({})", redactor.redact_text(&words));
    }
    finished.broken = broken.iter().map(|words| redactor.redact_text(words).into_owned()).collect();
    for words in &finished.broken {
        finished.text += &format!("\n[{words}]");
    }
    if let Some(id) = kept.filter(|_| services.tracking.is_sparing()) {
        finished.text +=
            &format!("\n[What it took away is kept: `lathe quarantine restore {id}` brings it back.]");
    }
    if let Some(error) = unrecorded {
        report_unrecorded(&mut finished, &error);
    }
    finished
}

/// The number of paths changed by others that a result names.
const NAMED: usize = 20;

/// Changes as the journal records them. A secret in a path is kept for undo only; the shown path is redacted.
pub fn journal_changes(changes: Vec<TreeChange>, by: &CallId, redactor: &Redactor) -> Vec<Change> {
    let record = |change: TreeChange| {
        let change = change.into_change(by.clone());
        match redactor.redact_text(&change.path) {
            Cow::Owned(clean) => change.shown_as(clean),
            Cow::Borrowed(_) => change,
        }
    };
    changes.into_iter().map(record).collect()
}

/// Redacts the summary, which goes into the journal as the text does. This happens string by string, because the
/// escapes of JSON would hide a secret.
fn redact_value(value: Value, services: &Services) -> Value {
    match value {
        Value::String(text) => Value::String(services.redactor.redact_text(&text).into_owned()),
        Value::Array(values) => values.into_iter().map(|value| redact_value(value, services)).collect(),
        Value::Object(object) => {
            let cleaned = object.into_iter().map(|(key, value)| (key, redact_value(value, services)));
            Value::Object(cleaned.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Reports that a change was made but cannot be undone from the journal.
fn report_unrecorded(finished: &mut CallFinished, error: &BlobError) {
    let message =
        format!("The change was made, but its content could not be recorded (not undoable): {error}");
    finished.text = format!("{}\n{message}", finished.text);
    finished.error = Some(ToolError {
        kind: match error {
            BlobError::NoSpace { .. } => ToolErrorKind::NoSpaceLeft,
            BlobError::Denied { .. }
            | BlobError::Damaged { .. }
            | BlobError::BadDigest { .. }
            | BlobError::TooLarge { .. }
            | BlobError::Io { .. } => ToolErrorKind::ExecutionFailed,
        },
        message,
    });
}

/// Stores an attachment. If that fails, the text says that it is missing; otherwise the text alone would promise it.
async fn attach(services: &Arc<Services>, finished: &mut CallFinished, attached: AttachedContent) {
    let AttachedContent { mime, content, name } = attached;
    match store(services, Some(content)).await {
        Ok(Some(blob)) => finished.attachments.push(Attachment { mime: mime.to_owned(), blob, name }),
        Ok(None) => {}
        Err(error) => finished.text = format!("{}\n{name} could not be attached: {error}", finished.text),
    }
}

/// Keeps output that was cut for the model in a blob, stderr after stdout. If that fails, the call succeeds without
/// the blob: the text says that the output was cut.
async fn store_whole_output(services: &Arc<Services>, shell: ShellData, cap: usize) -> Option<Truncation> {
    let ShellData { stdout, stderr, .. } = shell;
    let (out, err) = split_cap(&stdout, &stderr, cap);
    let shown = stdout.cut(out).shown + stderr.cut(err).shown;
    let total = stdout.total + stderr.total;
    if shown == total {
        return None;
    }
    let mut whole = stdout.bytes;
    // Exact, so that a few bytes of stderr after 64 MiB of stdout do not double the memory.
    whole.reserve_exact(stderr.bytes.len());
    whole.extend(stderr.bytes);
    let kept = whole.len() as u64;
    let blob = store(services, Some(whole)).await.ok()??;
    Some(Truncation { blob, shown, total, kept })
}

/// Stores bytes on a blocking thread: hashing, packing and syncing must not hold up other tasks of this thread.
async fn store(services: &Arc<Services>, bytes: Option<Vec<u8>>) -> Result<Option<Digest>, BlobError> {
    let Some(bytes) = bytes else { return Ok(None) };
    let held = Arc::clone(services);
    match tokio::task::spawn_blocking(move || held.blobs.put(&bytes)).await {
        Ok(stored) => stored.map(Some),
        Err(gone) => Err(BlobError::Io {
            doing: "store content of",
            path: services.workspace.root().to_owned(),
            source: std::io::Error::other(gone),
        }),
    }
}
