//! An approval request on a terminal.

use std::path::Path;

use lathe_host::OpenSession;
use lathe_protocol::{ApprovalAnswer, ApprovalAsked, Proposal, ProposedText, Raw, Seq};
use lathe_views::{Consent, Language, Say, Tell, approval_text, block_text};
use serde_json::Value;

use crate::terminal;
use crate::terminal::editor::{EditFailure, edited_text};
use crate::terminal::input::TypedLines;
use crate::terminal::stops::Stops;

/// Lines of a proposal that are shown.
const SHOWN: usize = 60;

/// The user's reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApprovalReply {
    pub(crate) answer: ApprovalAnswer,
    pub(crate) reason: Option<String>,
    /// The arguments, if the user edited them.
    pub(crate) edited: Option<Raw>,
}

/// Shows the proposal and asks until the reply is understood. The end of the input is a no. Arguments that are given
/// may be edited. None if the run is to be stopped instead.
pub(crate) async fn ask(
    asked: &ApprovalAsked,
    arguments: Option<&Raw>,
    (session, question): (&OpenSession, Seq),
    lines: &mut TypedLines,
    stops: &mut Stops,
) -> Option<ApprovalReply> {
    let language = terminal::language();
    // The text of a file after the user's edit; the request is asked again before it counts.
    let mut made: Option<ProposedText> = None;
    // Lines that were typed before the request was shown are not answers to it.
    lines.discard();
    let (text, mut hidden) = approval_text(asked, language, SHOWN);
    terminal::out(&format!("\n{text}"));
    loop {
        let mut more = String::new();
        if arguments.is_some() {
            more.push_str(&format!("{}{}", language.comma(), Say::AskEdit.text(language)));
        }
        if hidden > 0 {
            let all = match hidden {
                1 => Say::AskShowOne.text(language).to_owned(),
                lines => Tell::AskShowAll { lines }.text(language),
            };
            more.push_str(&format!("{}{all}", language.comma()));
        }
        let can_remember = made.is_none() && !asked.remember.is_empty();
        let hint = if can_remember { Say::AskApproval } else { Say::AskOnce };
        terminal::out(&format!("{}{more}{}", hint.text(language), language.colon()));
        let line = tokio::select! {
            line = lines.next() => line,
            _ = stops.next() => return None,
        };
        let Some(line) = line else {
            let reason = Some("nobody is there any more".to_owned());
            return Some(ApprovalReply { answer: ApprovalAnswer::No, reason, edited: None });
        };
        if matches!(line.trim(), "v" | "view") {
            let all = match &made {
                Some(made) => block_text(&made.diff, language, usize::MAX).0,
                None => approval_text(asked, language, usize::MAX).0,
            };
            terminal::out(&format!("\n{all}"));
            hidden = 0;
            continue;
        }
        let editor = editor().filter(|_| matches!(asked.what, Proposal::Edit { .. }));
        if let (Some(_), Some(editor), "e" | "edit") = (arguments, editor, line.trim())
            && let Some(offered) = session.proposed(question, None).await
        {
            match edit_file(&editor, (session, question), made.as_ref().unwrap_or(&offered), stops).await {
                Ok(text) => {
                    let (diff, more) = block_text(&text.diff, language, SHOWN);
                    terminal::out(&format!("\n{diff}"));
                    hidden = more;
                    made = Some(text);
                }
                Err(EditFailure::Stopped) => return None,
                Err(EditFailure::Unusable(reason)) => terminal::out_line(&terminal::clean(&reason)),
            }
            continue;
        }
        if let (Some(arguments), "e" | "edit") = (arguments, line.trim()) {
            match edit(arguments, lines, stops, language).await {
                Ok(edited) => {
                    return Some(ApprovalReply {
                        answer: ApprovalAnswer::Once,
                        reason: None,
                        edited: Some(edited),
                    });
                }
                Err(EditFailure::Stopped) => return None,
                Err(EditFailure::Unusable(reason)) => terminal::out_line(&terminal::clean(&reason)),
            }
            continue;
        }
        if let Some(Consent { answer, reason }) = Consent::read(line.trim(), can_remember) {
            let made = made.filter(|_| answer == ApprovalAnswer::Once);
            return Some(ApprovalReply { answer, reason, edited: made.and_then(|made| made.arguments) });
        }
    }
}

/// The user's editor, if one is set.
fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|set| !set.is_empty()))
}

/// Lets the user edit the text of a file that a call proposes, in the editor.
async fn edit_file(
    editor: &str,
    (session, question): (&OpenSession, Seq),
    offered: &ProposedText,
    stops: &mut Stops,
) -> Result<ProposedText, EditFailure> {
    let ending = Path::new(&offered.path).extension().and_then(|ending| ending.to_str()).unwrap_or("txt");
    let text = edited_text(editor, &offered.proposed, ending, stops).await?;
    let made = session.proposed(question, Some(text)).await;
    made.ok_or_else(|| "the question is no longer asked".to_owned().into())
}

/// Lets the user edit the arguments: in the editor, or by typing a line if none is set.
async fn edit(
    arguments: &Raw,
    lines: &mut TypedLines,
    stops: &mut Stops,
    language: Language,
) -> Result<Raw, EditFailure> {
    let mut value: Value = serde_json::from_str(arguments.get()).map_err(|error| error.to_string())?;
    let editor = editor();
    let one = value.get("command").and_then(Value::as_str).map(str::to_owned);
    let text = match (editor, &one) {
        (Some(editor), Some(command)) => edited_text(&editor, command, "sh", stops).await?,
        (Some(editor), None) => {
            let text = serde_json::to_string_pretty(&value).map_err(|error| error.to_string())?;
            edited_text(&editor, &text, "json", stops).await?
        }
        (None, _) => {
            terminal::out(&Say::NewText.label(language));
            let line = tokio::select! {
                line = lines.next() => line,
                _ = stops.next() => return Err(EditFailure::Stopped),
            };
            line.ok_or_else(|| "nothing was typed".to_owned())?
        }
    };
    let text = text.trim_end_matches('\n');
    if text.trim().is_empty() {
        return Err("the text is empty; type `n` to deny the call".to_owned().into());
    }
    match (one, value.as_object_mut()) {
        (Some(_), Some(members)) => drop(members.insert("command".to_owned(), text.into())),
        _ => value = serde_json::from_str(text).map_err(|error| format!("that is not JSON: {error}"))?,
    }
    Raw::from_serialize(&value).map_err(|error| error.to_string().into())
}
