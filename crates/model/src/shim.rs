//! Support for models without calls: tools are described in the system text, and a call is a fenced block in the
//! answer.
//!
//! It turns neutral messages into neutral messages, so it works on every wire.

use lathe_protocol::{
    Arguments, AssistantMessage, Block, Message, Raw, StopReason, TextBlock, ToolCall, ToolSpec, UserMessage,
};
use serde::Deserialize;

use crate::assembly::Ids;
use crate::request::{Head, ModelAnswer};

const FENCE: &str = "```tool_call";

const RULES: &str = "To use a tool, write a block like this, and nothing after it:

```tool_call
{\"name\": \"NAME\", \"arguments\": {}}
```

You may write several blocks. Then stop: the results come in the next message.";

pub(crate) fn head(head: &Head) -> Head {
    if head.tools.is_empty() {
        return head.clone();
    }
    let tools: Vec<String> = head.tools.iter().map(described).collect();
    Head {
        model: head.model.clone(),
        system: format!("{}\n\n# Tools\n\n{RULES}\n\n{}", head.system, tools.join("\n\n")),
        tools: Vec::new(),
    }
}

fn described(tool: &ToolSpec) -> String {
    format!("## {}\n{}\nArguments (JSON Schema): {}", tool.name, tool.description, tool.schema.get())
}

pub(crate) fn message(message: &Message) -> Message {
    match message {
        Message::User(_) => message.clone(),
        Message::Tool(tool) => {
            let word = if tool.error { "Error" } else { "Result" };
            let text = format!("{word} of {} ({}):\n{}", tool.name, tool.call, tool.text);
            Message::User(UserMessage { text, images: tool.images.clone() })
        }
        Message::Assistant(assistant) => {
            let blocks = assistant.blocks.iter().map(|block| match block {
                Block::Call(call) => Block::text(fenced(call)),
                Block::Text(_) | Block::Thinking(_) | Block::Opaque(_) => block.clone(),
            });
            // One text: some servers accept only that.
            let (texts, mut rest): (Vec<Block>, Vec<Block>) =
                blocks.partition(|block| matches!(block, Block::Text(_)));
            rest.push(Block::text(lathe_protocol::text_of(&texts)));
            Message::Assistant(AssistantMessage { blocks: rest })
        }
    }
}

fn fenced(call: &ToolCall) -> String {
    if let Some(raw) = &call.raw
        && let Ok(text) = serde_json::from_str::<String>(raw.get())
    {
        return format!("{FENCE}\n{text}\n```");
    }
    let name = serde_json::to_string(&call.name).unwrap_or_default();
    format!("{FENCE}\n{{\"name\": {name}, \"arguments\": {}}}\n```", call.arguments.as_text())
}

/// Extracts the calls from an answer's text.
pub(crate) fn answer(answer: ModelAnswer, step: u32) -> ModelAnswer {
    let mut ids = Ids::new(step);
    let mut blocks = Vec::new();
    for block in answer.blocks {
        match block {
            Block::Text(text) if text.text.contains(FENCE) => parse(&text.text, &mut ids, &mut blocks),
            Block::Text(_) | Block::Thinking(_) | Block::Call(_) | Block::Opaque(_) => blocks.push(block),
        }
    }
    let has_calls = lathe_protocol::calls_of(&blocks).next().is_some();
    let stop = match answer.stop {
        StopReason::EndTurn if has_calls => StopReason::ToolCalls,
        stop => stop,
    };
    ModelAnswer { blocks, stop, ..answer }
}

fn parse(text: &str, ids: &mut Ids, blocks: &mut Vec<Block>) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(FENCE) {
        if !before.trim().is_empty() {
            blocks.push(Block::Text(TextBlock { text: before.trim_end().to_owned(), raw: None }));
        }
        // A block that was not closed ends with the answer.
        let (inside, more) = after.split_once("\n```").unwrap_or((after, ""));
        blocks.push(Block::Call(call(inside.trim(), ids)));
        rest = more;
    }
    if !rest.trim().is_empty() {
        blocks.push(Block::Text(TextBlock { text: rest.trim_start().to_owned(), raw: None }));
    }
}

fn call(inside: &str, ids: &mut Ids) -> ToolCall {
    #[derive(Deserialize)]
    struct Form {
        name: String,
        #[serde(default)]
        arguments: Option<Raw>,
    }
    // The text is sent back as it came.
    let raw = Raw::from_serialize(inside).ok();
    match serde_json::from_str::<Form>(inside) {
        Ok(form) => {
            let id = ids.unique("", &form.name);
            let text = form.arguments.as_ref().map(Raw::get).unwrap_or_default();
            ToolCall { id, name: form.name, arguments: Arguments::from_text(text), raw }
        }
        Err(_) => {
            // The name, if it can be recognised, determines which tool reports the error.
            let name = inside
                .split_once("\"name\"")
                .and_then(|(_, rest)| rest.split('"').nth(1))
                .unwrap_or("unknown")
                .to_owned();
            let id = ids.unique("", &name);
            ToolCall { id, name, arguments: Arguments::Malformed(inside.to_owned()), raw }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> ModelAnswer {
        ModelAnswer {
            blocks: vec![Block::text(text)],
            stop: StopReason::EndTurn,
            usage: lathe_protocol::Usage::default(),
            model: String::new(),
            drift: None,
        }
    }

    #[test]
    fn a_fenced_block_is_a_call_and_goes_back_as_it_was() {
        let said = "I look.\n```tool_call\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```";
        let parsed = answer(answered(said), 2);
        let [Block::Text(text), Block::Call(call)] = &parsed.blocks[..] else {
            panic!("{:?}", parsed.blocks)
        };
        assert_eq!((text.text.as_str(), call.name.as_str()), ("I look.", "bash"));
        assert_eq!((call.id.as_str(), call.arguments.as_text()), ("2_bash", r#"{"command":"ls"}"#));
        assert_eq!(parsed.stop, StopReason::ToolCalls);
        let Message::Assistant(back) =
            message(&Message::Assistant(AssistantMessage { blocks: parsed.blocks }))
        else {
            panic!("an answer stays one")
        };
        assert_eq!(lathe_protocol::text_of(&back.blocks), said);
    }

    #[test]
    fn a_broken_block_is_a_call_with_malformed_arguments() {
        let parsed = answer(answered("```tool_call\n{\"name\": \"bash\", \"argu\n```"), 0);
        let Block::Call(call) = &parsed.blocks[0] else { panic!("a call is expected") };
        assert_eq!(call.name, "bash");
        assert!(matches!(call.arguments, Arguments::Malformed(_)));
    }
}
