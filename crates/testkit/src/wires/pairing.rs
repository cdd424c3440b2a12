//! The check that a strict provider would accept a conversation.
//!
//! Providers differ in what they forgive. This accepts only what all of them accept, so a conversation that passes
//! here passes anywhere.

use std::collections::HashSet;

use serde_json::Value;

/// Checks the `messages` of a Chat Completions request; the error names the message and the rule.
pub fn check_pairing(messages: &[Value]) -> Result<(), String> {
    let mut rest = messages.iter().enumerate();
    match rest.next() {
        Some((_, first)) if role(first) == "system" && first["content"].is_string() => {}
        Some((_, first)) => return Err(wrong(0, "the first message must be a system text", first)),
        None => return Err("there are no messages".to_owned()),
    }
    // Ids whose results must come next, in this order.
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in rest {
        let fail = |rule: &str| Err(wrong(at, rule, message));
        let role = role(message);
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            match open.first() {
                None => return fail("a tool message must follow the call it answers"),
                Some(expected) if *expected != id => {
                    return fail(&format!("the result of call `{expected}` must come here"));
                }
                Some(_) if !message["content"].is_string() => {
                    return fail("the content of a tool message must be a string");
                }
                Some(_) => drop(open.remove(0)),
            }
            continue;
        }
        if let Some(id) = open.first() {
            return fail(&format!("call `{id}` has no result before this"));
        }
        match role {
            "user" if message["content"].is_string() => {}
            "user"
                if super::are_parts(&message["content"], |part| match part["type"].as_str() {
                    Some("text") => part["text"].is_string(),
                    Some("image_url") => super::is_data_url(&part["image_url"]["url"]),
                    _ => false,
                }) => {}
            "user" => return fail("the content of a user message must be a string, or texts and images"),
            "assistant" => open = check_assistant(message).map_err(|rule| wrong(at, &rule, message))?,
            "system" => return fail("only the first message may be of the system"),
            _ => return fail("this role is unknown"),
        }
    }
    if let Some(id) = open.first() {
        return Err(format!("the conversation ends and call `{id}` has no result"));
    }
    match messages.last() {
        Some(last) if matches!(role(last), "user" | "tool") => Ok(()),
        _ => Err("the conversation must end with a user or tool message".to_owned()),
    }
}

/// The ids of its calls, in order.
fn check_assistant(message: &Value) -> Result<Vec<&str>, String> {
    let calls = match message.get("tool_calls") {
        None => &[][..],
        Some(Value::Array(calls)) if !calls.is_empty() => calls,
        Some(_) => return Err("tool_calls must be left out or be a list with calls".to_owned()),
    };
    match message.get("content") {
        Some(Value::String(text)) if text.is_empty() && calls.is_empty() => {
            return Err("an assistant message must not be empty".to_owned());
        }
        Some(Value::String(_)) => {}
        Some(Value::Null) if !calls.is_empty() => {}
        Some(Value::Null) => return Err("content may be null only beside calls".to_owned()),
        _ => return Err("the content of an assistant message must be a string or null".to_owned()),
    }
    let mut seen = HashSet::new();
    let mut ids = Vec::new();
    for call in calls {
        let id = call["id"].as_str().unwrap_or_default();
        let name = call["function"]["name"].as_str().unwrap_or_default();
        if id.is_empty() || name.is_empty() || call["type"] != "function" {
            return Err("a call must have an id, the type `function` and a name".to_owned());
        }
        if !call["function"]["arguments"].is_string() {
            return Err(format!("the arguments of call `{id}` must be a string"));
        }
        if !seen.insert(id) {
            return Err(format!("the id `{id}` stands twice in one message"));
        }
        ids.push(id);
    }
    Ok(ids)
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

fn wrong(at: usize, rule: &str, message: &Value) -> String {
    let shown: String = message.to_string().chars().take(300).collect();
    format!("message {at}: {rule}: {shown}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn system() -> Value {
        json!({"role": "system", "content": "be good"})
    }

    fn user() -> Value {
        json!({"role": "user", "content": "do it"})
    }

    fn assistant(content: Value, ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "type": "function", "function": {"name": "bash", "arguments": "{"}}))
            .collect();
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        message
    }

    fn tool(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "ok"})
    }

    #[test]
    fn takes_well_formed_conversations() {
        let good = [
            vec![system(), user()],
            vec![system(), user(), assistant(json!("hi"), &[]), user()],
            vec![system(), user(), assistant(json!(null), &["a"]), tool("a")],
            vec![system(), user(), assistant(json!("x"), &["a", "b"]), tool("a"), tool("b"), user()],
            vec![
                system(),
                user(),
                assistant(json!(""), &["a"]),
                tool("a"),
                assistant(json!(null), &["a"]),
                tool("a"),
            ],
        ];
        for messages in good {
            assert_eq!(check_pairing(&messages), Ok(()), "{messages:#?}");
        }
    }

    #[test]
    fn refuses_what_a_strict_provider_refuses() {
        let with = |message: &Value, key: &str, value: Value| {
            let mut message = message.clone();
            message[key] = value;
            message
        };
        let mut odd_call = assistant(json!(null), &["a"]);
        odd_call["tool_calls"][0]["function"]["arguments"] = json!({});
        let mut nameless = assistant(json!(null), &["a"]);
        nameless["tool_calls"][0]["function"]["name"] = json!("");
        let two = assistant(json!(null), &["a", "b"]);
        let one = assistant(json!(null), &["a"]);
        let bad: Vec<(&str, Vec<Value>)> = vec![
            ("no messages", vec![]),
            ("first message", vec![user()]),
            ("only the first", vec![system(), user(), system(), user()]),
            ("role is unknown", vec![system(), with(&user(), "role", json!("robot"))]),
            ("user message must be a string", vec![system(), with(&user(), "content", json!(null))]),
            ("must follow the call", vec![system(), user(), tool("a")]),
            ("`a` must come here", vec![system(), user(), two.clone(), tool("b"), tool("a")]),
            ("`a` must come here", vec![system(), user(), one.clone(), tool("z")]),
            ("`b` has no result before", vec![system(), user(), two.clone(), tool("a"), user()]),
            ("call `b` has no result", vec![system(), user(), two, tool("a")]),
            ("must follow the call", vec![system(), user(), one.clone(), tool("a"), tool("a")]),
            ("has no result before", vec![system(), user(), one.clone(), user(), tool("a")]),
            (
                "tool message must be a string",
                vec![system(), user(), one, with(&tool("a"), "content", json!([]))],
            ),
            ("twice", vec![system(), user(), assistant(json!(null), &["a", "a"]), tool("a"), tool("a")]),
            ("arguments of call `a`", vec![system(), user(), odd_call, tool("a")]),
            ("must have an id", vec![system(), user(), nameless, tool("a")]),
            ("must not be empty", vec![system(), user(), assistant(json!(""), &[]), user()]),
            ("null only beside calls", vec![system(), user(), assistant(json!(null), &[]), user()]),
            ("string or null", vec![system(), user(), assistant(json!([]), &[]), user()]),
            (
                "list with calls",
                vec![system(), user(), with(&assistant(json!("x"), &[]), "tool_calls", json!([])), user()],
            ),
            ("must end with", vec![system(), user(), assistant(json!("hi"), &[])]),
            ("must end with", vec![system()]),
        ];
        for (rule, messages) in bad {
            let error = check_pairing(&messages).expect_err(rule);
            assert!(error.contains(rule), "{error} does not say {rule}");
        }
    }
}
