//! Options as surfaces offer them: a row for each key that a flag or a request for a run may set.
//!
//! The rows are made from the schema, so an option is defined once, next to its field. The command line makes its
//! flags, help and completions from them, the server its members and their description.

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::load::Flag;
use crate::schema::{Field, ValueShape, fixed_keys};

/// An option that is set by a flag, by a member of a request, or by both.
pub struct OptionRow {
    /// The whole key, such as `run.mode`.
    pub key: String,
    pub flag: Option<FlagRow>,
    pub member: Option<MemberRow>,
    unit: Option<Unit>,
    field: &'static Field,
}

/// The flag of an option.
pub struct FlagRow {
    /// Without its dashes.
    pub long: String,
    pub short: Option<char>,
    /// Trae's short form of two letters, with its dash.
    pub trae: Option<String>,
    /// The name of its value; none for a switch.
    pub value_name: Option<String>,
    pub help: String,
    commands: &'static [String],
}

/// The member of a request for a run that sets an option.
pub struct MemberRow {
    pub name: String,
    /// True if only admins may give it.
    pub admin: bool,
    help: String,
}

/// The values that a flag takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionForm {
    /// No value: given or not.
    Switch,
    Text,
    /// One of these words, each with its help.
    Words(Vec<(String, String)>),
    /// A number. It may begin with a dash, so that a negative one is refused with a message.
    Number,
    /// Several texts.
    List,
}

/// The form in which people write a number.
#[derive(Clone, Copy)]
enum Unit {
    Steps,
    Tokens,
    Dollars,
    Time,
}

impl Unit {
    fn named(name: &str) -> Option<Self> {
        match name {
            "steps" => Some(Unit::Steps),
            "tokens" => Some(Unit::Tokens),
            "dollars" => Some(Unit::Dollars),
            "time" => Some(Unit::Time),
            _ => None,
        }
    }

    fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Unit::Steps => {
                let steps = text.parse::<u32>().ok().filter(|steps| *steps > 0);
                let wrong = || format!("give a number of steps: a whole number from 1 to {}", u32::MAX);
                steps.map(Value::from).ok_or_else(wrong)
            }
            Unit::Tokens => text
                .parse::<u64>()
                .map(Value::from)
                .map_err(|_| "give a number of tokens: a whole number that is 1 or more".to_owned()),
            // Anything but a finite amount would be no cap.
            Unit::Dollars => {
                let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
                let wrong = "give an amount of US dollars: a number that is 0 or more, such as 2.50";
                amount.map(Value::from).ok_or_else(|| wrong.to_owned())
            }
            Unit::Time => seconds(text).map(Value::from).ok_or_else(|| {
                "give a time that is 1 second or more: seconds as 90 or 90s, minutes as 15m, hours as 2h"
                    .to_owned()
            }),
        }
    }
}

fn seconds(text: &str) -> Option<u64> {
    let (number, factor) = match text.as_bytes().last()? {
        b'h' => (text.strip_suffix('h')?, 3600),
        b'm' => (text.strip_suffix('m')?, 60),
        b's' => (text.strip_suffix('s')?, 1),
        _ => (text, 1),
    };
    Some(number.parse::<u64>().ok()?.saturating_mul(factor))
}

/// Every option that a flag or a member sets, in the order of the sections.
pub fn options() -> &'static [OptionRow] {
    static ROWS: OnceLock<Vec<OptionRow>> = OnceLock::new();
    ROWS.get_or_init(|| {
        fixed_keys().into_iter().filter_map(|(path, field)| row(path.join("."), field)).collect()
    })
}

/// The option of a key.
pub fn option_of_key(key: &str) -> Option<&'static OptionRow> {
    options().iter().find(|row| row.key == key)
}

fn row(key: String, field: &'static Field) -> Option<OptionRow> {
    let flag = field.flag.as_ref().map(|flag| {
        let (name, value) =
            flag.split_once(' ').map_or((flag.as_str(), None), |(name, value)| (name, Some(value)));
        FlagRow {
            long: name.trim_start_matches('-').to_owned(),
            short: field.short,
            trae: field.trae.clone(),
            value_name: value.map(str::to_owned),
            help: field.flag_help.clone().unwrap_or_else(|| field.doc.trim_end_matches('.').to_owned()),
            commands: &field.commands,
        }
    });
    let member = field.member.as_ref().map(|name| MemberRow {
        name: name.clone(),
        admin: field.admin,
        help: field.doc.clone(),
    });
    let unit = field.unit.as_deref().and_then(Unit::named);
    (flag.is_some() || member.is_some()).then_some(OptionRow { key, flag, member, unit, field })
}

impl OptionRow {
    pub fn form(&self) -> OptionForm {
        match &self.field.shape {
            ValueShape::Bool => OptionForm::Switch,
            ValueShape::Integer { .. } | ValueShape::Number { .. } => OptionForm::Number,
            ValueShape::Choice(words) => {
                let help = self.field.choice_help.iter().cloned().chain(std::iter::repeat(String::new()));
                OptionForm::Words(words.iter().cloned().zip(help).collect())
            }
            ValueShape::List(_) => OptionForm::List,
            ValueShape::Text { .. } | ValueShape::Map(_) | ValueShape::Table(_) => OptionForm::Text,
        }
    }

    /// The value that a word of the command line gives.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        match self.unit {
            Some(unit) => unit.read(text),
            None => Ok(Value::from(text)),
        }
    }

    /// Reports the type that a value of a request must have, if this one has another. Its range is not checked.
    pub fn accepts(&self, value: &Value) -> Result<(), String> {
        let fits = match &self.field.shape {
            ValueShape::Bool => value.is_boolean(),
            ValueShape::Integer { .. } => value.is_u64(),
            ValueShape::Number { .. } => value.is_number(),
            ValueShape::Choice(words) => {
                value.as_str().is_some_and(|word| words.iter().any(|known| known == word))
            }
            ValueShape::List(_) => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            ValueShape::Text { .. } => value.is_string(),
            ValueShape::Map(_) | ValueShape::Table(_) => value.is_object(),
        };
        if fits { Ok(()) } else { Err(self.field.shape.expected()) }
    }

    /// This option as the command line gave it.
    pub fn from_flag(&self, value: Value) -> Flag {
        let name = self.flag.as_ref().map_or_else(|| self.key.clone(), |flag| format!("--{}", flag.long));
        Flag::new(&*self.key, value, name)
    }

    /// This option as a request gave it.
    pub fn from_member(&self, value: Value) -> Flag {
        let name = self.member.as_ref().map_or(&self.key, |member| &member.name);
        Flag::new(&*self.key, value, name.clone())
    }
}

impl FlagRow {
    /// Tells whether a command has this flag.
    pub fn is_on(&self, command: &str) -> bool {
        self.commands.iter().any(|on| on == command)
    }
}

impl MemberRow {
    /// The JSON schema of the member.
    pub fn schema(&self, row: &OptionRow) -> Value {
        let kind = match &row.field.shape {
            ValueShape::Bool => json!({ "type": ["boolean", "null"] }),
            ValueShape::Integer { least, .. } => {
                json!({ "type": ["integer", "null"], "minimum": (*least).max(0) })
            }
            ValueShape::Number { .. } => json!({ "type": ["number", "null"] }),
            ValueShape::Choice(words) => {
                let words: Vec<Value> = words.iter().map(|word| json!(word)).chain([Value::Null]).collect();
                json!({ "enum": words })
            }
            ValueShape::List(_) => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
            ValueShape::Text { .. } | ValueShape::Map(_) | ValueShape::Table(_) => {
                json!({ "type": ["string", "null"] })
            }
        };
        let mut schema: Value = kind;
        let admin = if self.admin { " For admins." } else { "" };
        schema["description"] = json!(format!("{}{admin}", self.help));
        schema
    }
}
