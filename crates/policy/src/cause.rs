//! The reason of a decision by a rule: what the command or call does that the rule speaks about.
//!
//! A model reads these words. A file is named by the pattern that stands in the rule, never by a name that was found on the
//! disk: a denial must not list what is in a denied folder.

use lathe_protocol::{Decision, Kind, Verdict};

use crate::gate::decision;
use crate::patterns::Wanted;
use crate::rules::{Rule, Setting, Subject};
use crate::touch::{Touch, What};

/// The decision of a rule, with the reason for it.
pub(crate) fn by_rule(rule: &Rule, subject: Subject<'_>, setting: Setting<'_>) -> Decision {
    let cause = of_path(rule, subject, setting).or_else(|| of_kind(rule, subject));
    let says = match rule.decision {
        Verdict::Deny => format!("{} denies", rule.name()),
        Verdict::Ask => "a rule asks about".to_owned(),
        Verdict::Allow => "a rule allows".to_owned(),
    };
    let reason = match (cause, rule.reason.as_str()) {
        (None, "") => format!("{says} it"),
        (Some(cause), "") => format!("{cause}, which {says}"),
        (Some(cause), reason) if rule.decision == Verdict::Deny => format!("{cause}, which {says}: {reason}"),
        (None | Some(_), reason) => reason.to_owned(),
    };
    decision(rule.decision, &rule.name(), &reason)
}

/// The pattern of the rule's `path` that the subject meets, and by what.
fn of_path(rule: &Rule, subject: Subject<'_>, setting: Setting<'_>) -> Option<String> {
    let touches = match subject {
        Subject::Command(act) => act.touches,
        Subject::Call(_, touches) => touches,
        Subject::Line => return None,
    };
    if rule.decision == Verdict::Allow {
        return None;
    }
    let named = |wanted: &Wanted, touch: &Touch| match &touch.what {
        What::Path { names, .. } => touch.sure && names.iter().any(|name| wanted.names(name)),
        What::Pattern { .. } | What::Ending { .. } | What::Unknown => false,
    };
    // The plainest cause first: a file that is named, then one that is surely meant, then one that may be.
    let met = |by: &dyn Fn(&Wanted, &Touch) -> bool| {
        rule.path.iter().find_map(|pattern| {
            let wanted = setting.wishes.of(std::slice::from_ref(pattern), rule.decision, setting.gate);
            Some((pattern, touches.iter().find(|touch| by(&wanted, touch))?))
        })
    };
    let meets = |wanted: &Wanted, touch: &Touch| touch.meets(wanted, setting.gate);
    let surely =
        |wanted: &Wanted, touch: &Touch| touch.sure && touch.what != What::Unknown && meets(wanted, touch);
    let by_name = met(&named);
    let is_named = by_name.is_some();
    let (pattern, touch) = by_name.or_else(|| met(&surely)).or_else(|| met(&meets))?;
    let pattern = lathe_protocol::visible(pattern);
    Some(match (is_named, touch.reads) {
        (true, true) => format!("it reads {pattern}"),
        (true, false) => format!("it writes {pattern}"),
        (false, true) => format!("it may read {pattern}"),
        (false, false) => format!("it may write {pattern}"),
    })
}

/// The kind that the rule speaks about, where a line is meant by nothing else.
fn of_kind(rule: &Rule, subject: Subject<'_>) -> Option<String> {
    let kinds: Vec<Kind> = match subject {
        Subject::Command(act) => act.kinds.to_vec(),
        Subject::Call(call, _) => crate::kinds::of_call(call),
        Subject::Line => vec![Kind::Execute],
    };
    let found = rule.kind.iter().find(|kind| kinds.contains(kind))?;
    Some(format!("it is of the kind `{}`", found.as_str()))
}
