//! A step costs the same after five hundred steps as after five.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use lathe_model::{Head, Rope, Variables, Wire};
use lathe_protocol::{
    AgentId, Arguments, AssistantMessage, Block, CallId, Message, StepNo, ToolCall, ToolMessage,
};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; only a counter changes in addition.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`, and it is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `System.alloc` with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn step(rope: &mut Rope, number: u32) -> u64 {
    let before = COUNT.with(Cell::get);
    let id = CallId::new(format!("call_{:04}", number));
    let call = ToolCall {
        id: id.clone(),
        name: "bash".into(),
        arguments: Arguments::from_text(r#"{"command":"ls"}"#),
        raw: None,
    };
    rope.push(Message::Assistant(AssistantMessage {
        blocks: vec![Block::text("I look."), Block::Call(call)],
    }));
    rope.push(Message::Tool(ToolMessage {
        call: id,
        name: "bash".into(),
        text: "x".repeat(2000),
        error: false,
        images: Vec::new(),
    }));
    let request = rope.request(StepNo(number));
    assert!(!request.parts.is_empty());
    COUNT.with(Cell::get) - before
}

#[test]
fn allocations_of_a_step_do_not_grow_with_the_history() {
    for wire in Wire::ALL {
        let mut rope = Rope::new(wire, AgentId::main(), Arc::new(Variables::none()));
        rope.set_head(&Head { model: "m".into(), system: "s".into(), tools: Vec::new() });
        rope.push(Message::user("do it"));
        let counts: Vec<u64> = (1..=520).map(|number| step(&mut rope, number)).collect();
        let usual = |from: usize| counts[from..from + 20].iter().min().copied().unwrap();
        assert_eq!(usual(5), usual(500), "{}", wire.as_str());
    }
}
