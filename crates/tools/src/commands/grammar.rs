//! Reads the words of a command as the arguments of its tool, typed by the tool's schema. Pure.
//!
//! Bash has done all quoting and expanding, so a word is a value and nothing in it is read twice: an option that
//! takes a value takes the next word whatever it looks like, `-h` inside a text is text, and `1` is a number only
//! where the schema wants a number.

use lathe_protocol::nearest;
use serde_json::{Map, Number, Value};

/// A parameter, as the command's schema describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: ParameterKind,
    /// The kind of the items of a list.
    pub(crate) items: ParameterKind,
    pub(crate) about: String,
    pub(crate) required: bool,
    pub(crate) allowed: Vec<String>,
    pub(crate) default: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Text,
    Integer,
    Number,
    Flag,
    /// A list of texts, unless a value is written as JSON.
    List,
    /// Any JSON value; a word that is not JSON is a text.
    Json,
}

impl ParameterKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Flag => "boolean",
            Self::List => "array",
            Self::Json => "json",
        }
    }
}

/// The grammar of one command's words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grammar {
    pub(crate) parameters: Vec<Parameter>,
    /// One-letter options.
    pub(crate) short: &'static [(char, &'static str)],
    /// The parameters that words without a name go to, in order.
    pub(crate) positions: Vec<String>,
    /// The parameter that takes every further word.
    pub(crate) rest: Option<String>,
}

/// The requests that words can make.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WordsRequest {
    /// One line of help, or all of it.
    Help {
        whole: bool,
    },
    Run(GivenArguments),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct GivenArguments {
    pub(crate) arguments: Map<String, Value>,
    /// True if the arguments stand on standard input, as one JSON object.
    pub(crate) from_input: bool,
    /// Required parameters that were not given.
    pub(crate) missing: Vec<String>,
}

/// The ways to read `true` or `false` after a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlagReading {
    TakeWords,
    StandAlone,
}

impl Grammar {
    /// The grammar of a command in a table.
    pub(crate) fn of(
        schema: &Value,
        short: &'static [(char, &'static str)],
        positions: &[&str],
        rest: Option<&str>,
    ) -> Self {
        Self {
            parameters: parameters(schema),
            short,
            positions: positions.iter().map(|name| (*name).to_owned()).collect(),
            rest: rest.map(str::to_owned),
        }
    }

    /// The grammar of a foreign schema: words go to the required parameters in order. If the last of these is a list,
    /// it takes all further words.
    pub(crate) fn by_schema(schema: &Value) -> Self {
        let parameters = parameters(schema);
        let mut positions: Vec<String> = parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| parameter.name.clone())
            .collect();
        let is_list = |name: &String| {
            parameters
                .iter()
                .any(|parameter| parameter.name == *name && parameter.kind == ParameterKind::List)
        };
        let rest = positions.pop_if(|last| is_list(last));
        Self { parameters, short: &[], positions, rest }
    }

    /// Adapts the descriptions that name folders to a command whose paths begin in the caller's folder.
    pub(crate) fn in_callers_folder(mut self) -> Self {
        for parameter in &mut self.parameters {
            for said in ["the workspace if left out", "relative to the workspace"] {
                parameter.about = parameter.about.replace(said, &said.replace("workspace", "current folder"));
            }
        }
        self
    }

    /// Reads the words. `--flag true` is the flag's value, unless that word is needed elsewhere.
    pub(crate) fn read(&self, words: &[String]) -> Result<WordsRequest, String> {
        let lacks = |read: &Result<WordsRequest, String>| matches!(read, Ok(WordsRequest::Run(given)) if !given.missing.is_empty());
        let read = self.read_as(words, FlagReading::TakeWords);
        match lacks(&read).then(|| self.read_as(words, FlagReading::StandAlone)) {
            Some(other) if other.is_ok() && !lacks(&other) => other,
            Some(_) | None => read,
        }
    }

    fn read_as(&self, words: &[String], flags: FlagReading) -> Result<WordsRequest, String> {
        let mut given = GivenArguments::default();
        let mut plain: Vec<&str> = Vec::new();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            match word {
                "--" => plain.extend(words.by_ref()),
                "-h" => return Ok(WordsRequest::Help { whole: false }),
                "--help" => return Ok(WordsRequest::Help { whole: true }),
                "--json" | "--json=-" => {
                    let value = if word == "--json" { words.next() } else { Some("-") };
                    match value {
                        Some("-") => given.from_input = true,
                        Some(text) => self.read_object(text, &mut given)?,
                        None => return Err("--json needs a JSON object, or - for standard input".to_owned()),
                    }
                }
                _ if word.starts_with("--") => {
                    let (name, value) = match word.trim_start_matches('-').split_once('=') {
                        Some((name, value)) => (name, Some(value)),
                        None => (word.trim_start_matches('-'), None),
                    };
                    self.option((name, value), flags, &mut words, &mut given)?;
                }
                _ if word.len() > 1 && word.starts_with('-') => {
                    let name = self.letter(word)?;
                    self.option((name, None), flags, &mut words, &mut given)?;
                }
                _ => plain.push(word),
            }
        }
        self.place_words(plain, &mut given)?;
        let missing = self.parameters.iter().filter(|parameter| parameter.required);
        given.missing = missing
            .filter(|parameter| !given.arguments.contains_key(&parameter.name))
            .map(|parameter| parameter.name.clone())
            .collect();
        // In the order of the schema, whatever the order of the words.
        let place = |name: &String| self.parameters.iter().position(|parameter| parameter.name == *name);
        let mut arguments: Vec<(String, Value)> = given.arguments.into_iter().collect();
        arguments.sort_by_key(|(name, _)| place(name).unwrap_or(usize::MAX));
        given.arguments = arguments.into_iter().collect();
        Ok(WordsRequest::Run(given))
    }

    /// Reads all arguments from one JSON object: each must be known, and of its kind.
    pub(crate) fn read_object(&self, text: &str, given: &mut GivenArguments) -> Result<(), String> {
        for (name, mut value) in parse_object(text)? {
            let Some(parameter) = self.parameters.iter().find(|parameter| parameter.name == name) else {
                return Err(self.unknown(&name));
            };
            if let (ParameterKind::List, Value::String(_)) = (parameter.kind, &value) {
                value = Value::Array(vec![value]);
            }
            let fits = match parameter.kind {
                ParameterKind::Text => value.is_string(),
                ParameterKind::Integer => value.is_i64() || value.is_u64(),
                ParameterKind::Number => value.is_number(),
                ParameterKind::Flag => value.is_boolean(),
                ParameterKind::List => {
                    value.as_array().is_some_and(|all| !parameter.required || !all.is_empty())
                }
                ParameterKind::Json => true,
            };
            if !fits {
                return Err(format!("--json: {name} must be {}, not {value}", parameter.kind.as_str()));
            }
            given.arguments.insert(name, value);
        }
        given.missing.retain(|name| !given.arguments.contains_key(name));
        Ok(())
    }

    fn letter(&self, word: &str) -> Result<&'static str, String> {
        let known = self.short.iter().find(|(letter, _)| word.chars().skip(1).eq([*letter]));
        known.map(|(_, name)| *name).ok_or_else(|| {
            format!("Unknown option: {word}. A word that begins with - is given after `--`, or by its name")
        })
    }

    fn option<'a>(
        &self,
        (name, value): (&str, Option<&'a str>),
        flags: FlagReading,
        words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
        given: &mut GivenArguments,
    ) -> Result<(), String> {
        let alike = |known: &str, name: &str| known.replace('-', "_") == name.replace('-', "_");
        let named = |name: &str| {
            let exact = self.parameters.iter().find(|parameter| parameter.name == name);
            exact.or_else(|| self.parameters.iter().find(|parameter| alike(&parameter.name, name)))
        };
        if let Some(flag) = name.strip_prefix("no_").or(name.strip_prefix("no-")).and_then(named)
            && flag.kind == ParameterKind::Flag
            && value.is_none()
        {
            given.arguments.insert(flag.name.clone(), Value::Bool(false));
            return Ok(());
        }
        let Some(parameter) = named(name) else { return Err(self.unknown(name)) };
        let text = match (value, parameter.kind) {
            (Some(value), _) => value,
            // Only these two words can be a flag's value.
            (None, ParameterKind::Flag) => {
                let is_value =
                    |word: &&str| flags == FlagReading::TakeWords && matches!(*word, "true" | "false");
                words.next_if(is_value).unwrap_or("true")
            }
            (None, _) => words.next().ok_or_else(|| format!("--{name} needs a value"))?,
        };
        parameter.put(text, given)
    }

    fn place_words(&self, plain: Vec<&str>, given: &mut GivenArguments) -> Result<(), String> {
        let named = |name: &String| self.parameters.iter().find(|parameter| parameter.name == *name);
        let free: Vec<&String> =
            self.positions.iter().filter(|name| !given.arguments.contains_key(*name)).collect();
        let mut free = free.into_iter().filter_map(named);
        let rest = self.rest.as_ref().and_then(named);
        for word in plain {
            match free.next().or(rest) {
                Some(parameter) => parameter.put(word, given)?,
                None => return Err(format!("Unexpected argument: {word}")),
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> String {
        let mut known = self.parameters.iter().map(|parameter| parameter.name.as_str());
        let begun = known.clone().find(|known| name.len() > 1 && known.starts_with(name));
        match begun.or_else(|| nearest(name, &mut known)) {
            Some(near) => format!("Unknown option: --{name}. Did you mean --{near}?"),
            None => format!("Unknown option: --{name}"),
        }
    }
}

fn parameters(schema: &Value) -> Vec<Parameter> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, property): (&String, &Value)| Parameter {
        name: name.clone(),
        kind: kind(property),
        items: property.get("items").map_or(ParameterKind::Text, kind),
        about: property.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        required: required.contains(&name.as_str()),
        allowed: allowed(property),
        default: property.get("default").cloned(),
    };
    properties.into_iter().flatten().map(parameter).collect()
}

impl Parameter {
    fn put(&self, text: &str, given: &mut GivenArguments) -> Result<(), String> {
        if self.kind == ParameterKind::List {
            return self.push(text, given);
        }
        let (name, value) = (&self.name, self.value(self.kind, text)?);
        if let Value::String(text) = &value
            && !self.allowed.is_empty()
            && !self.allowed.contains(text)
        {
            return Err(format!("--{name}: {text:?} is none of {}", self.allowed.join(", ")));
        }
        given.arguments.insert(name.clone(), value);
        Ok(())
    }

    /// A word as a value of a kind.
    fn value(&self, kind: ParameterKind, text: &str) -> Result<Value, String> {
        let name = &self.name;
        Ok(match kind {
            ParameterKind::Text => Value::String(text.to_owned()),
            ParameterKind::Integer => {
                let number = text.trim().parse::<i64>();
                Value::from(number.map_err(|_| format!("--{name}: a whole number is wanted, not {text:?}"))?)
            }
            ParameterKind::Number => {
                let number = text.trim().parse::<f64>().ok().and_then(Number::from_f64);
                Value::Number(number.ok_or_else(|| format!("--{name}: a number is wanted, not {text:?}"))?)
            }
            ParameterKind::Flag => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "1" => Value::Bool(true),
                "false" | "no" | "0" => Value::Bool(false),
                _ => return Err(format!("--{name}: true or false is wanted, not {text:?}")),
            },
            ParameterKind::Json | ParameterKind::List => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
            }
        })
    }

    fn push(&self, text: &str, given: &mut GivenArguments) -> Result<(), String> {
        let json = text.starts_with('[') || text.starts_with('{');
        let mut values = match serde_json::from_str(text) {
            Ok(Value::Array(values)) if json => values,
            Ok(value) if json => vec![value],
            Ok(_) | Err(_) => vec![self.value(self.items, text)?],
        };
        let all = given.arguments.entry(self.name.clone()).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(all) = all else { return Err(format!("--{}: it was given already", self.name)) };
        all.append(&mut values);
        Ok(())
    }
}

/// Parses one JSON object with all arguments.
pub(crate) fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("--json: one JSON object is wanted".to_owned()),
        Err(error) => Err(format!("--json: {error}")),
    }
}

fn kind(property: &Value) -> ParameterKind {
    match property.get("type").and_then(Value::as_str) {
        Some("string") => ParameterKind::Text,
        Some("integer") => ParameterKind::Integer,
        Some("number") => ParameterKind::Number,
        Some("boolean") => ParameterKind::Flag,
        Some("array") => ParameterKind::List,
        None if !allowed(property).is_empty() => ParameterKind::Text,
        Some(_) | None => ParameterKind::Json,
    }
}

/// The values of an enum, including one whose values have descriptions of their own.
fn allowed(property: &Value) -> Vec<String> {
    let texts = |values: &Value| -> Vec<String> {
        values.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if let Some(values) = property.get("enum") {
        return texts(values);
    }
    let variants = property.get("oneOf").or_else(|| property.get("anyOf")).and_then(Value::as_array);
    let variants = variants.into_iter().flatten();
    variants.filter_map(|variant| variant.get("const")?.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grammar() -> Grammar {
        let schema = json!({
            "properties": {
                "file": { "type": "string" },
                "n": { "type": "integer" },
                "ratio": { "type": "number" },
                "deep": { "type": "boolean" },
                "mode": { "type": "string", "enum": ["a", "b"] },
                "any": {},
                "names": { "type": "array", "items": { "type": "string" } },
                "counts": { "type": "array", "items": { "type": "integer" } },
                "kebab-key": { "type": "string" },
            },
            "required": ["file"],
        });
        Grammar::of(&schema, &[('d', "deep"), ('n', "n")], &["file", "n"], None)
    }

    fn read(words: &[&str]) -> Result<Value, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match grammar().read(&words)? {
            WordsRequest::Help { whole } => Ok(json!({ "help": whole })),
            WordsRequest::Run(given) if !given.missing.is_empty() => {
                Err(format!("missing {:?}", given.missing))
            }
            WordsRequest::Run(given) if given.from_input => Ok(json!("from input")),
            WordsRequest::Run(given) => Ok(Value::Object(given.arguments)),
        }
    }

    #[test]
    fn words_mean_what_the_schema_says() {
        for (words, expected) in [
            (&["f"][..], json!({ "file": "f" })),
            (&["f", "--n", "-5"], json!({ "file": "f", "n": -5 })),
            (&["f", "--n=-5"], json!({ "file": "f", "n": -5 })),
            (&["f", "-n", "3"], json!({ "file": "f", "n": 3 })),
            (&["f", "--n", "1"], json!({ "file": "f", "n": 1 })),
            (&["--file=a=b"], json!({ "file": "a=b" })),
            (&["--file", "yes"], json!({ "file": "yes" })),
            (&["--file", "--x"], json!({ "file": "--x" })),
            (&["--file", "007"], json!({ "file": "007" })),
            (&["f", "--ratio", "1.50"], json!({ "file": "f", "ratio": 1.5 })),
            (&["f", "--deep"], json!({ "file": "f", "deep": true })),
            (&["f", "-d"], json!({ "file": "f", "deep": true })),
            (&["f", "--no-deep"], json!({ "file": "f", "deep": false })),
            (&["f", "--deep=no"], json!({ "file": "f", "deep": false })),
            (&["--deep=true", "f"], json!({ "file": "f", "deep": true })),
            (&["--deep", "true"], json!({ "file": "true", "deep": true })),
            (&["f", "--deep", "true"], json!({ "file": "f", "deep": true })),
            (&["--deep", "false", "f"], json!({ "file": "f", "deep": false })),
            (&["f", "--kebab-key", "v"], json!({ "file": "f", "kebab-key": "v" })),
            (&["f", "--kebab_key=v"], json!({ "file": "f", "kebab-key": "v" })),
            (&["f", "--counts", "1", "--counts", "2"], json!({ "file": "f", "counts": [1, 2] })),
            (&["f", "9"], json!({ "file": "f", "n": 9 })),
            (&["f", "--mode", "b"], json!({ "file": "f", "mode": "b" })),
            (&["f", "--any", "{\"a\":1}"], json!({ "file": "f", "any": { "a": 1 } })),
            (&["f", "--any", "plain"], json!({ "file": "f", "any": "plain" })),
            (&["f", "--names", "a", "--names", "b"], json!({ "file": "f", "names": ["a", "b"] })),
            (&["f", "--names", "[\"a\",\"b\"]"], json!({ "file": "f", "names": ["a", "b"] })),
            (&["--", "-h"], json!({ "file": "-h" })),
            (&["--", "--n"], json!({ "file": "--n" })),
            (&["a -h b"], json!({ "file": "a -h b" })),
            (&[""], json!({ "file": "" })),
            (&["-"], json!({ "file": "-" })),
            (&["-h"], json!({ "help": false })),
            (&["f", "--help"], json!({ "help": true })),
            (&["--json", "{\"file\":\"x\",\"n\":2}"], json!({ "file": "x", "n": 2 })),
        ] {
            assert_eq!(read(words), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (words, expected) in [
            (&[][..], "missing [\"file\"]"),
            (&["f", "--n", "x"], "--n: a whole number is wanted, not \"x\""),
            (&["f", "--n"], "--n needs a value"),
            (&["f", "--mode", "c"], "--mode: \"c\" is none of a, b"),
            (&["f", "--deeep"], "Unknown option: --deeep. Did you mean --deep?"),
            (&["f", "--zzz", "x"], "Unknown option: --zzz"),
            (&["f", "--counts", "x"], "--counts: a whole number is wanted, not \"x\""),
            (&["f", "--deep=x"], "--deep: true or false is wanted, not \"x\""),
            (&["-x"], "Unknown option: -x. A word that begins with - is given after `--`, or by its name"),
            (&["--json", "[1]"], "--json: one JSON object is wanted"),
            (&["--json", "{\"file\":5}"], "--json: file must be string, not 5"),
            (&["--json", "{\"fil\":\"x\"}"], "Unknown option: --fil. Did you mean --file?"),
            (&["f", "1", "more"], "Unexpected argument: more"),
        ] {
            assert_eq!(read(words), Err(expected.to_owned()), "{words:?}");
        }
    }

    #[test]
    fn a_rest_parameter_takes_every_further_word() {
        let schema = json!({
            "properties": { "file_path": { "type": "array" }, "limit": { "type": "integer" } },
            "required": ["file_path"],
        });
        let grammar = Grammar::by_schema(&schema);
        let words = ["a", "b", "--limit", "2", "c"].map(str::to_owned);
        let Ok(WordsRequest::Run(given)) = grammar.read(&words) else { unreachable!("it fits") };
        assert_eq!(Value::Object(given.arguments), json!({ "file_path": ["a", "b", "c"], "limit": 2 }));
    }
}
