//! A check of Trae's trajectory format (spec/trae.md 5.1): every key and every type, and no others.

use serde_json::{Map, Value};

type Check = fn(&Value) -> Result<(), String>;

fn text(value: &Value) -> Result<(), String> {
    value.is_string().then_some(()).ok_or_else(|| format!("{value} is no text"))
}

fn count(value: &Value) -> Result<(), String> {
    value.is_u64().then_some(()).ok_or_else(|| format!("{value} is no count"))
}

fn flag(value: &Value) -> Result<(), String> {
    value.is_boolean().then_some(()).ok_or_else(|| format!("{value} is no flag"))
}

fn seconds(value: &Value) -> Result<(), String> {
    value.is_f64().then_some(()).ok_or_else(|| format!("{value} is no float"))
}

/// Python's naive ISO form.
fn time(value: &Value) -> Result<(), String> {
    let shape: String = value
        .as_str()
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    ["0000-00-00T00:00:00", "0000-00-00T00:00:00.000000"]
        .contains(&shape.as_str())
        .then_some(())
        .ok_or_else(|| format!("{value} is no time"))
}

fn state(value: &Value) -> Result<(), String> {
    ["thinking", "calling_tool", "reflecting", "completed", "error"]
        .iter()
        .any(|state| value == state)
        .then_some(())
        .ok_or_else(|| format!("{value} is no state"))
}

fn role(value: &Value) -> Result<(), String> {
    ["system", "user", "assistant"]
        .iter()
        .any(|role| value == role)
        .then_some(())
        .ok_or_else(|| format!("{value} is no role"))
}

fn or_null(value: &Value, check: Check) -> Result<(), String> {
    if value.is_null() { Ok(()) } else { check(value) }
}

fn each(value: &Value, check: Check) -> Result<(), String> {
    let items = value.as_array().ok_or_else(|| format!("{value} is no list"))?;
    for (at, item) in items.iter().enumerate() {
        check(item).map_err(|error| format!("[{at}] {error}"))?;
    }
    Ok(())
}

/// Exactly these keys, in this order; those of `optional` may be missing.
fn object(value: &Value, keys: &[(&str, Check)], optional: &[(&str, Check)]) -> Result<(), String> {
    let fields: &Map<String, Value> = value.as_object().ok_or_else(|| format!("{value} is no object"))?;
    for (key, check) in keys {
        let field = fields.get(*key).ok_or_else(|| format!("{key} is missing"))?;
        check(field).map_err(|error| format!(".{key} {error}"))?;
    }
    for (key, field) in fields {
        if let Some((_, check)) = optional.iter().find(|(name, _)| name == key) {
            check(field).map_err(|error| format!(".{key} {error}"))?;
        } else if !keys.iter().any(|(name, _)| name == key) {
            return Err(format!("{key} is not of the format"));
        }
    }
    let order: Vec<&String> = fields.keys().take(keys.len()).collect();
    let wanted: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
    if order != wanted {
        return Err(format!("keys in the order {order:?}"));
    }
    Ok(())
}

fn call(value: &Value) -> Result<(), String> {
    let arguments: Check = |value| match value {
        Value::Object(_) | Value::String(_) => Ok(()),
        other => Err(format!("{other} are no arguments")),
    };
    object(
        value,
        &[("call_id", text), ("name", text), ("arguments", arguments), ("id", |v| or_null(v, text))],
        &[],
    )
}

fn result(value: &Value) -> Result<(), String> {
    object(
        value,
        &[
            ("call_id", text),
            ("name", text),
            ("success", flag),
            ("result", |v| or_null(v, text)),
            ("error", |v| or_null(v, text)),
            ("id", |v| or_null(v, text)),
        ],
        &[],
    )
}

fn message(value: &Value) -> Result<(), String> {
    object(
        value,
        &[("role", role), ("content", |v| or_null(v, text))],
        &[("tool_call", call), ("tool_result", result)],
    )
}

fn calls(value: &Value) -> Result<(), String> {
    or_null(value, |v| each(v, call))
}

fn response(value: &Value, usage: Check) -> Result<(), String> {
    object(
        value,
        &[
            ("content", text),
            ("model", text),
            ("finish_reason", text),
            ("usage", usage),
            ("tool_calls", calls),
        ],
        &[],
    )
}

fn whole_usage(value: &Value) -> Result<(), String> {
    object(
        value,
        &[
            ("input_tokens", count),
            ("output_tokens", count),
            ("cache_creation_input_tokens", count),
            ("cache_read_input_tokens", count),
            ("reasoning_tokens", count),
        ],
        &[],
    )
}

fn short_usage(value: &Value) -> Result<(), String> {
    object(value, &[("input_tokens", count), ("output_tokens", count)], &[])
}

fn interaction(value: &Value) -> Result<(), String> {
    object(
        value,
        &[
            ("timestamp", time),
            ("provider", text),
            ("model", text),
            ("input_messages", |v| each(v, message)),
            ("response", |v| response(v, whole_usage)),
            ("tools_available", |v| or_null(v, |v| each(v, text))),
        ],
        &[],
    )
}

fn step(value: &Value) -> Result<(), String> {
    object(
        value,
        &[
            ("step_number", count),
            ("timestamp", time),
            ("state", state),
            ("llm_messages", |v| each(v, message)),
            ("llm_response", |v| or_null(v, |v| response(v, |v| or_null(v, short_usage)))),
            ("tool_calls", calls),
            ("tool_results", |v| or_null(v, |v| each(v, result))),
            ("reflection", |v| or_null(v, text)),
            ("error", |v| or_null(v, text)),
        ],
        &[("lakeview_summary", text)],
    )
}

/// Checks a whole trajectory; panics with the path to what is wrong.
#[track_caller]
pub fn check(trajectory: &Value) {
    let checked = object(
        trajectory,
        &[
            ("task", text),
            ("start_time", |v| or_null(v, time)),
            ("end_time", |v| or_null(v, time)),
            ("provider", text),
            ("model", text),
            ("max_steps", count),
            ("llm_interactions", |v| each(v, interaction)),
            ("agent_steps", |v| each(v, step)),
            ("success", |v| or_null(v, flag)),
            ("final_result", |v| or_null(v, text)),
            ("execution_time", |v| or_null(v, seconds)),
        ],
        &[],
    );
    if let Err(error) = checked {
        panic!("root{error}");
    }
}
