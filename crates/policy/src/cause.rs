//! The reason of a decision by a rule: the act of the command or call that the rule is about.
//!
//! The model reads these words. A file is named by the pattern in the rule, never by a name that was found on the
//! disk: a denial must not list what is in a denied folder.

use lathe_protocol::{Decision, ToolKind, Verdict};

use crate::gate::decision;
use crate::patterns::PathPatterns;
use crate::rules::{Rule, Setting, Subject};
use crate::touch::{Touch, TouchTarget};

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

/// Says which pattern of the rule's `path` the subject meets, and by which act.
fn of_path(rule: &Rule, subject: Subject<'_>, setting: Setting<'_>) -> Option<String> {
    let touches = match subject {
        Subject::Command(act) => act.touches,
        Subject::Call(_, touches) => touches,
        Subject::Line => return None,
    };
    if rule.decision == Verdict::Allow {
        return None;
    }
    let named = |wanted: &PathPatterns, touch: &Touch| match &touch.target {
        TouchTarget::Path { names, .. } => touch.sure && names.iter().any(|name| wanted.names(name)),
        TouchTarget::Pattern { .. } | TouchTarget::Ending { .. } | TouchTarget::Unknown => false,
    };
    // The plainest cause comes first: a file that is named, then one that is surely meant, then one that may be
    // meant.
    let met = |by: &dyn Fn(&PathPatterns, &Touch) -> bool| {
        rule.path.iter().find_map(|pattern| {
            let wanted = setting.patterns.of(std::slice::from_ref(pattern), rule.decision, setting.gate);
            Some((pattern, touches.iter().find(|touch| by(&wanted, touch))?))
        })
    };
    let meets = |wanted: &PathPatterns, touch: &Touch| touch.meets(wanted, setting.gate);
    let surely = |wanted: &PathPatterns, touch: &Touch| {
        touch.sure && touch.target != TouchTarget::Unknown && meets(wanted, touch)
    };
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

/// Says which kind the rule is about. A whole line counts as nothing but a line to execute.
fn of_kind(rule: &Rule, subject: Subject<'_>) -> Option<String> {
    let kinds: Vec<ToolKind> = match subject {
        Subject::Command(act) => act.kinds.to_vec(),
        Subject::Call(call, _) => crate::kinds::of_call(call),
        Subject::Line => vec![ToolKind::Execute],
    };
    let found = rule.kind.iter().find(|kind| kinds.contains(kind))?;
    Some(format!("it is of the kind `{}`", found.as_str()))
}
