//! The reference of every key, made from the schema.

use crate::schema::{Field, ValueShape, fields};
use crate::tree::under;

const INTRODUCTION: &str = "# Configuration

Values come from, the highest first: the command line, the environment, the project's
`.lathe/config.toml`, a `trae_config.yaml` or `trae_config.json`, your own `$LATHE_HOME/config.toml`,
and the defaults below. `lathe config show` prints each value with its source.

A project may not choose where code and keys are sent, what is started, which file is written, or how
much is allowed: such keys in a project's file are ignored with a warning, trusted or not. Limits it may only
narrow: a smaller number, a shorter list, `false`, or the name of a model where you name none. Its `[check]` and
`[field.NAME]` count entry by entry once you trust them as they are (`lathe trust add`). A Trae file counts
as your own when you name it (`--config-file` or `TRAE_CONFIG_FILE`). One that stands in the folder you work in counts
as the project's until you trust it by its name (`lathe trust add trae_config.yaml`). Then it says all that a named
one says, but an address of it gets no key from anywhere else: the key stands in the same file, or in the `.env` beside
it, of which only the `<NAME>_API_KEY` of known providers count. No other `.env` is ever read.

An unknown key or a wrong value in a file of ours is an error that names file and line, and so is a key that
nothing reads in this version; in a Trae file it is a warning.
";

const NOT_YET: &str = "Not available in this version.";

/// A Markdown reference of every key: type, default, who may set it, variable, meaning.
pub fn documentation() -> String {
    let mut text = INTRODUCTION.to_owned();
    let (tables, loose): (Vec<&Field>, Vec<&Field>) =
        fields().iter().partition(|field| is_table(&field.shape));
    text.push_str("\n## Keys outside any table\n\n");
    rows(&mut text, "", loose.into_iter(), None, false);
    for field in tables {
        section(&mut text, field);
    }
    text
}

fn is_table(shape: &ValueShape) -> bool {
    matches!(shape, ValueShape::Table(_) | ValueShape::Map(_))
}

fn section(text: &mut String, field: &Field) {
    let (header, fields) = match &field.shape {
        ValueShape::Table(fields) => (field.key.clone(), fields.as_slice()),
        ValueShape::Map(values) => match &**values {
            ValueShape::Table(fields) => (under(&field.key, "NAME"), fields.as_slice()),
            ValueShape::Text { .. }
            | ValueShape::Bool
            | ValueShape::Integer { .. }
            | ValueShape::Number { .. }
            | ValueShape::Choice(_)
            | ValueShape::List(_)
            | ValueShape::Map(_) => {
                text.push_str(&format!("\n## `[{}]`\n\n{}\n\n", field.key, field.doc));
                text.push_str(&restriction(field));
                text.push_str(&format!("Every value is {}.\n", kind(values)));
                return;
            }
        },
        _ => return,
    };
    text.push_str(&format!("\n## `[{header}]`\n\n{}\n\n", field.doc));
    if field.not_yet {
        text.push_str(&format!("{NOT_YET}\n\n"));
    }
    text.push_str(&restriction(field));
    rows(text, &header, fields.iter(), field.user_only.as_ref(), field.by_trust);
}

/// The restriction on who may set a table, if there is one.
fn restriction(field: &Field) -> String {
    match (&field.user_only, field.by_trust) {
        (None, _) => String::new(),
        (Some(reason), false) => format!("Only you may set these: {reason}.\n\n"),
        (Some(reason), true) => format!(
            "You may set these, and a project may with your trust in each entry (`lathe trust`): {reason} by itself.\n\n"
        ),
    }
}

fn rows<'a>(
    text: &mut String,
    table: &str,
    fields: impl Iterator<Item = &'a Field>,
    user_only: Option<&String>,
    by_trust: bool,
) {
    text.push_str("| key | type | default | set by | variable | meaning |\n|---|---|---|---|---|---|\n");
    for field in fields {
        let key = under(table, &field.key);
        let kind = kind(&field.shape);
        let default = match &field.default {
            Some(default) => format!("`{default}`"),
            None => "none".to_owned(),
        };
        let by = match user_only.or(field.user_only.as_ref()) {
            Some(_) if by_trust => "you, project by trust",
            Some(_) => "you",
            None if field.narrow_only => "you; project may narrow",
            None => "you, project",
        };
        let variable = match &field.variable {
            // A name of the user's own has no variable.
            Some(variable) if !table.contains('.') => format!("`{variable}`"),
            _ => String::new(),
        };
        let mut meaning = field.doc.replace('\n', " ");
        if field.not_yet {
            meaning = format!("{NOT_YET} {meaning}");
        }
        text.push_str(&format!("| `{key}` | {kind} | {default} | {by} | {variable} | {meaning} |\n"));
    }
}

fn kind(shape: &ValueShape) -> String {
    match shape {
        ValueShape::Text { secret: false } => "text".to_owned(),
        ValueShape::Text { secret: true } => "secret text".to_owned(),
        ValueShape::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        ValueShape::List(items) => format!("list of {}", kind(items)),
        ValueShape::Map(values) => format!("table of {}", kind(values)),
        ValueShape::Bool | ValueShape::Integer { .. } | ValueShape::Number { .. } | ValueShape::Table(_) => {
            shape.expected().trim_start_matches("a ").to_owned()
        }
    }
}
