//! The shape of [`Settings`], read once from its JSON schema, so that nothing about an option is stated twice.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::sections::Settings;

pub(crate) enum ValueShape {
    Text {
        secret: bool,
    },
    Bool,
    Integer {
        least: i64,
        most: i64,
    },
    Number {
        least: f64,
        most: f64,
    },
    Choice(Vec<String>),
    List(Box<ValueShape>),
    /// Names of the user's own, each with the same shape.
    Map(Box<ValueShape>),
    Table(Vec<Field>),
}

pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) shape: ValueShape,
    pub(crate) doc: String,
    pub(crate) default: Option<Json>,
    pub(crate) variable: Option<String>,
    /// The reason why a project's file may not set it.
    pub(crate) user_only: Option<String>,
    /// True if a project's file may set entries of it that the user trusts.
    pub(crate) by_trust: bool,
    /// True if a project's file may only narrow what the user allows.
    pub(crate) narrow_only: bool,
    /// True if nothing reads it in this version.
    pub(crate) not_yet: bool,
    /// The flag with the name of its value, as `--max-steps N`.
    pub(crate) flag: Option<String>,
    /// Its short form.
    pub(crate) short: Option<char>,
    /// Trae's short form of two letters.
    pub(crate) trae: Option<String>,
    /// The commands that have the flag.
    pub(crate) commands: Vec<String>,
    /// Help of the flag, if it differs from `doc`.
    pub(crate) flag_help: Option<String>,
    /// The form in which people write the number.
    pub(crate) unit: Option<String>,
    /// Its name in a request for a run.
    pub(crate) member: Option<String>,
    /// True if only admins may give that member.
    pub(crate) admin: bool,
    /// Help of each choice, in the order of the choices.
    pub(crate) choice_help: Vec<String>,
}

/// The fields of [`Settings`].
pub(crate) fn fields() -> &'static [Field] {
    static FIELDS: OnceLock<Vec<Field>> = OnceLock::new();
    FIELDS.get_or_init(|| {
        let generator =
            SchemaSettings::default().with(|settings| settings.inline_subschemas = true).into_generator();
        let schema = generator.into_root_schema_for::<Settings>();
        match shape(schema.as_value()) {
            ValueShape::Table(fields) => fields,
            _ => Vec::new(),
        }
    })
}

fn shape(schema: &Json) -> ValueShape {
    if let Some(choices) = choices(schema) {
        return ValueShape::Choice(choices);
    }
    // `Option<T>` of a choice is `anyOf: [T, null]`; of any other type it is a second type.
    if let Some(Json::Array(members)) = schema.get("anyOf") {
        let member = members.iter().find(|member| type_of(member) != Some("null"));
        return member.map_or(ValueShape::Text { secret: false }, shape);
    }
    match type_of(schema) {
        Some("boolean") => ValueShape::Bool,
        Some("integer") => ValueShape::Integer {
            least: schema.get("minimum").and_then(Json::as_i64).unwrap_or(i64::MIN),
            most: most(schema),
        },
        Some("number") => ValueShape::Number {
            least: schema.get("minimum").and_then(Json::as_f64).unwrap_or(f64::MIN),
            most: schema.get("maximum").and_then(Json::as_f64).unwrap_or(f64::MAX),
        },
        Some("array") => {
            let items = schema.get("items").map_or(ValueShape::Text { secret: false }, shape);
            ValueShape::List(Box::new(items))
        }
        Some("object") => match (schema.get("properties"), schema.get("additionalProperties")) {
            (Some(Json::Object(properties)), _) => {
                ValueShape::Table(properties.iter().map(|(key, schema)| field(key, schema)).collect())
            }
            (_, Some(values)) => ValueShape::Map(Box::new(shape(values))),
            (_, None) => ValueShape::Table(Vec::new()),
        },
        _ => ValueShape::Text { secret: schema.get("x-secret") == Some(&Json::Bool(true)) },
    }
}

fn field(key: &str, schema: &Json) -> Field {
    let text = |name: &str| schema.get(name).and_then(Json::as_str).map(str::to_owned);
    let is_set = |name: &str| schema.get(name) == Some(&Json::Bool(true));
    let default = schema.get("default");
    Field {
        key: key.to_owned(),
        shape: shape(schema),
        doc: text("description").unwrap_or_default(),
        default: default.filter(|default| !default.is_null()).cloned(),
        variable: text("x-env"),
        user_only: text("x-user-only"),
        by_trust: is_set("x-by-trust"),
        narrow_only: is_set("x-narrow-only"),
        not_yet: is_set("x-not-yet"),
        flag: text("x-flag"),
        short: text("x-short").and_then(|short| short.chars().next()),
        trae: text("x-trae"),
        commands: text("x-on").unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
        flag_help: text("x-flag-help"),
        unit: text("x-unit"),
        member: text("x-member"),
        admin: is_set("x-admin"),
        choice_help: choice_help(schema),
    }
}

/// The doc comments of the members of an enum.
fn choice_help(schema: &Json) -> Vec<String> {
    if let Some(Json::Array(members)) = schema.get("anyOf") {
        return members
            .iter()
            .find(|member| type_of(member) != Some("null"))
            .map(choice_help)
            .unwrap_or_default();
    }
    let Some(Json::Array(members)) = schema.get("oneOf") else { return Vec::new() };
    let help =
        |member: &Json| member.get("description").and_then(Json::as_str).unwrap_or_default().to_owned();
    members.iter().map(help).collect()
}

/// The first type that is not null.
fn type_of(schema: &Json) -> Option<&str> {
    match schema.get("type")? {
        Json::Array(types) => {
            let mut types = types.iter().filter_map(Json::as_str);
            types.find(|name| *name != "null")
        }
        name => name.as_str(),
    }
}

/// The words of an enum, with or without doc comments on its members.
fn choices(schema: &Json) -> Option<Vec<String>> {
    let texts = |values: Vec<&Json>| -> Vec<String> {
        values.into_iter().filter_map(Json::as_str).map(str::to_owned).collect()
    };
    match (schema.get("enum"), schema.get("oneOf")) {
        (Some(Json::Array(words)), _) => Some(texts(words.iter().collect())),
        (_, Some(Json::Array(members))) => {
            Some(texts(members.iter().filter_map(|member| member.get("const")).collect()))
        }
        _ => None,
    }
}

fn most(schema: &Json) -> i64 {
    let by_format = match schema.get("format").and_then(Json::as_str) {
        Some("uint32") => i64::from(u32::MAX),
        Some("int32") => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    schema.get("maximum").and_then(Json::as_i64).unwrap_or(by_format)
}

impl ValueShape {
    /// For messages: what a value must be.
    pub(crate) fn expected(&self) -> String {
        match self {
            ValueShape::Text { .. } => "text".to_owned(),
            ValueShape::Bool => "true or false".to_owned(),
            ValueShape::Integer { least, most } => {
                bounded("a whole number", least, most, *most < u32::MAX.into())
            }
            ValueShape::Number { least, most } => bounded("a number", least, most, *most < f64::MAX),
            ValueShape::Choice(words) => format!("one of {}", words.join(", ")),
            ValueShape::List(items) => format!("a list ({} each)", items.expected()),
            ValueShape::Map(_) | ValueShape::Table(_) => "a table".to_owned(),
        }
    }
}

fn bounded<T: std::fmt::Display>(what: &str, least: T, most: T, both: bool) -> String {
    if both { format!("{what} from {least} to {most}") } else { format!("{what} of at least {least}") }
}

/// A whole key and its field, for every key that does not lie under a name of the user's own.
pub(crate) fn fixed_keys() -> Vec<(Vec<String>, &'static Field)> {
    fn walk(table: &[String], fields: &'static [Field], found: &mut Vec<(Vec<String>, &'static Field)>) {
        for field in fields {
            let mut path = table.to_vec();
            path.push(field.key.clone());
            match &field.shape {
                ValueShape::Table(inner) => walk(&path, inner, found),
                ValueShape::Text { .. }
                | ValueShape::Bool
                | ValueShape::Integer { .. }
                | ValueShape::Number { .. }
                | ValueShape::Choice(_)
                | ValueShape::List(_)
                | ValueShape::Map(_) => found.push((path, field)),
            }
        }
    }
    let mut found = Vec::new();
    walk(&[], fields(), &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(fields: &'a [Field], path: &str) -> &'a Field {
        let (head, rest) = path.split_once('.').unwrap_or((path, ""));
        let field = fields.iter().find(|field| field.key == head).expect(path);
        match (&field.shape, rest) {
            (_, "") => field,
            (ValueShape::Table(inner), rest) => at(inner, rest),
            (ValueShape::Map(inner), rest) => match &**inner {
                ValueShape::Table(inner) => at(inner, rest),
                _ => panic!("{path}"),
            },
            _ => panic!("{path}"),
        }
    }

    #[test]
    fn the_schema_is_understood() {
        for (path, expected) in [
            ("model.name", "text"),
            ("model.temperature", "a number from 0 to 2"),
            ("model.top_k", "a whole number of at least 0"),
            ("model.max_tokens", "a whole number of at least 1"),
            ("model.parallel_tool_calls", "true or false"),
            ("model.stop_sequences", "a list (text each)"),
            ("run.mode", "one of plan, default, auto-edit, full-auto"),
            ("run.sandbox", "one of off, workspace, read-only"),
            ("run.toolset", "one of lathe, trae, gemini, bash"),
            ("run.console", "one of simple, rich"),
            ("run.line_seconds", "a whole number of at least 1"),
            ("run.tools", "a list (text each)"),
            ("run.trajectory", "text"),
            ("providers", "a table"),
            ("mcp_servers.env", "a table"),
        ] {
            assert_eq!(at(fields(), path).shape.expected(), expected, "{path}");
        }
        for (path, is_secret) in [("model.api_key", true), ("providers.api_key", true), ("model.name", false)]
        {
            let shape = &at(fields(), path).shape;
            assert_eq!(matches!(shape, ValueShape::Text { secret: true }), is_secret, "{path}");
        }
    }

    #[test]
    fn defaults_variables_and_reasons_stand_beside_the_field() {
        assert_eq!(at(fields(), "run.check_seconds").default, Some(60.into()));
        assert_eq!(at(fields(), "model.max_retries").default, Some(3.into()));
        assert_eq!(at(fields(), "model.name").default, None);
        assert_eq!(at(fields(), "model.name").variable.as_deref(), Some("LATHE_MODEL"));
        assert!(at(fields(), "run.mode").user_only.is_some());
        assert!(at(fields(), "run.check_seconds").user_only.is_none());
        assert_eq!(at(fields(), "run.check_seconds").doc, "Seconds a command under `check` may take.");
    }
}
