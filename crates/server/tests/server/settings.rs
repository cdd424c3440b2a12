//! Tools, agent modes, prompts, models and the configuration over HTTP.

use std::os::unix::fs::PermissionsExt as _;

use lathe_protocol::Mode;
use lathe_server::{Role, Tokens};
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done};

async fn put(server: &Server, path: &str, body: Value) -> (u16, Value) {
    server.ask_as(&server.token, "PUT", path, Some(&body)).await
}

async fn delete(server: &Server, path: &str) -> (u16, Value) {
    server.ask_as(&server.token, "DELETE", path, None).await
}

fn one_step() -> String {
    cassette([json!([done("d1", "done")])])
}

/// System text and first user text of a run with this request.
async fn first_words(server: &Server, request: Value) -> (String, String) {
    let (status, result) = server.post("/agent/run", request).await;
    assert_eq!(status, 200, "{result}");
    let id = result["session_id"].as_str().unwrap();
    let host = lathe_host::Host::new(lathe_host::Home::at(server.home.clone()));
    let text = host.archive().trajectory(&lathe_protocol::SessionId::new(id)).unwrap();
    let trajectory: Value = serde_json::from_str(&text).unwrap();
    let messages = &trajectory["llm_interactions"][0]["input_messages"];
    let content = |at: usize| messages[at]["content"].as_str().unwrap().to_owned();
    (content(0), content(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_have_names_and_can_be_left_out_of_new_sessions() {
    let steps = [
        json!([call("w1", "write", json!({ "path": "b.txt", "content": "x\n" }))]),
        json!([done("d1", "x")]),
    ];
    let server = Server::start(cassette(steps), Mode::FullAuto).await;
    // Every tool of every toolset has a name in Chinese.
    for toolset in ["lathe", "trae", "gemini", "bash"] {
        let (_, listed) = server.get(&format!("/agent/tools?toolset={toolset}")).await;
        for tool in listed["tools"].as_array().unwrap() {
            assert!(tool["initial_name_zh"].is_string(), "{toolset}: {tool}");
        }
    }
    let (_, listed) = server.get("/agent/tools").await;
    let tool = |listed: &Value, name: &str| {
        listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).cloned().unwrap()
    };
    for (name, chinese) in [
        ("bash", "终端"),
        ("str_replace_based_edit_tool", "文本编辑"),
        ("json_edit_tool", "JSON编辑"),
        ("sequentialthinking", "顺序思考"),
        ("task_done", "任务完成"),
        ("quality_review", "质量审查"),
        ("online_doc_tool", "在线文档"),
        ("ckg", "代码知识图谱"),
    ] {
        let tool = tool(&listed, name);
        assert_eq!((&tool["initial_name_zh"], &tool["enabled"]), (&json!(chinese), &json!(true)));
        assert!(tool["description"].as_str().unwrap().len() > 10 && tool["custom_name"].is_null());
    }
    assert!(listed["tools"].as_array().unwrap().iter().all(|tool| tool["initial_name_zh"].is_string()));
    let (status, row) = server
        .post("/agent/tools/config", json!({ "name": "write", "custom_name": "Pen", "enabled": false }))
        .await;
    assert_eq!((status, &row["custom_name"], &row["enabled"]), (200, &json!("Pen"), &json!(false)));
    let (_, listed) = server.get("/agent/tools?toolset=lathe").await;
    assert_eq!(tool(&listed, "write")["custom_name"], "Pen");
    // The session has no such tool, and its file is not written.
    let (_, result) = server.post("/agent/run", json!({ "task": "write" })).await;
    assert_eq!(result["success"], true);
    assert!(!server.root.join("b.txt").exists());
    for (body, expected) in [
        (json!({ "name": "task_done", "enabled": false }), 422),
        (json!({ "name": "nothing", "enabled": false }), 404),
        (json!({ "name": "bash", "custom_name": "x".repeat(65) }), 422),
    ] {
        let (status, _) = server.post("/agent/tools/config", body.clone()).await;
        assert_eq!(status, expected, "{body}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_mode_is_kept_used_by_name_and_forgotten() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    let mode = json!({ "system_prompt": "You are a poet.", "custom_instructions": "Rhyme.", "tool_whitelist": ["view"] });
    let (status, kept) = put(&server, "/api/modes/poet", mode).await;
    assert_eq!((status, &kept["mode_name"]), (200, &json!("poet")));
    let (_, listed) = server.get("/api/modes").await;
    assert_eq!(listed["modes"][0]["system_prompt"], "You are a poet.");
    let file = server.home.join("server/modes.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let (system, task) = first_words(&server, json!({ "task": "Write.", "agent_mode": "poet" })).await;
    assert_eq!(system, "You are a poet.");
    assert_eq!(task, "Write.\n\n[Special instructions]\nRhyme.");
    let (status, refused) =
        server.post("/agent/run", json!({ "task": "Write.", "agent_mode": "novelist" })).await;
    assert_eq!(
        (status, &refused["detail"]),
        (422, &json!("`agent_mode`: `novelist` is not known; there are: poet."))
    );
    let (_, prompt) = server.get("/agent/prompt?name=poet").await;
    assert_eq!(prompt["prompt"], "You are a poet.");
    assert_eq!(delete(&server, "/api/modes/poet").await.0, 200);
    assert_eq!(delete(&server, "/api/modes/poet").await.0, 404);
    for (name, body) in [
        ("a%2Fb", json!({})),
        ("x", json!({ "custom_instructions": "y".repeat(8_001) })),
        ("%20", json!({})),
        ("x", json!({ "tool_whitelist": ["view", "nope"] })),
        ("x", json!({ "tool_whitelst": ["view"] })),
        ("x", json!({ "tool_whitelist": "view" })),
        ("x", json!([])),
    ] {
        let (status, answer) = put(&server, &format!("/api/modes/{name}"), body.clone()).await;
        assert_eq!(status, 422, "{name} {body}: {answer}");
    }
    assert_eq!(server.get("/api/modes").await.1["modes"], json!([]));
    // A mode may be for another toolset, and come from the server fork.
    let mode = json!({ "tool_whitelist": ["str_replace_based_edit_tool", "view", "bash(git status)"], "reflection_max_rounds": 3 });
    let (status, kept) = put(&server, "/api/modes/x", mode).await;
    assert_eq!(status, 200, "{kept}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_of_a_mode_comes_before_that_of_the_request_and_names_stand_for_built_in_ones() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    let own = server.get("/agent/prompt?name=lathe").await.1["prompt"].as_str().unwrap().to_owned();
    for (request, expected) in [
        (json!({ "task": "t" }), own.as_str()),
        (json!({ "task": "t", "prompt": "from the request" }), "from the request"),
        (
            json!({ "task": "t", "prompt": "from the request", "agent_mode_config": { "mode_name": "m", "system_prompt": "from the mode" } }),
            "from the mode",
        ),
        (
            json!({ "task": "t", "prompt": "from the request", "agent_mode_config": { "custom_instructions": "i" } }),
            "from the request",
        ),
        (json!({ "task": "t", "prompt": "TRAE_AGENT_SYSTEM_PROMPT" }), own.as_str()),
    ] {
        let (system, _) = first_words(&server, request.clone()).await;
        // The system text of a session contains its mode too.
        let (before, rest) = system.split_once("# What you may do\n").unwrap_or((&system, ""));
        let after = rest.find("\n\n").and_then(|end| rest.get(end + 2..)).unwrap_or_default();
        assert_eq!(format!("{before}{after}"), expected, "{request}");
        assert_eq!(rest.contains("mode `full-auto`"), expected == own, "{request}");
    }
    let (status, trae) = server.get("/agent/prompt?name=TRAE_AGENT_SYSTEM_PROMPT").await;
    assert!(status == 200 && trae["prompt"].as_str().unwrap().len() > 100);
    assert_eq!(server.get("/agent/prompt?name=none").await.0, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_in_and_never_comes_out() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    let operator = Tokens::add(&server.home, "op", Role::Operator).unwrap();
    let model = json!({ "provider": "openai", "model": "m1", "base_url": "http://127.0.0.1:1/v1", "api_key": "sk-very-secret-key" });
    let (status, _) = server.ask_as(&operator, "PUT", "/api/models/mine", Some(&model)).await;
    assert_eq!(status, 403);
    let (status, kept) = put(&server, "/api/models/mine", model.clone()).await;
    assert_eq!((status, &kept["api_key_set"]), (200, &json!(true)));
    let (_, listed) = server.ask_as(&operator, "GET", "/api/models", None).await;
    assert_eq!(listed["models"][0]["name"], "mine");
    assert!(listed["providers"].as_array().unwrap().iter().any(|row| row["name"] == "openai"));
    let (_, tested) = server.post("/api/models/mine/test", json!({})).await;
    assert_eq!(tested["ok"], false);
    for told in [&kept, &listed, &tested] {
        assert!(!told.to_string().contains("very-secret"), "{told}");
    }
    let auth = server.home.join("auth.json");
    assert!(std::fs::read_to_string(&auth).unwrap().contains("sk-very-secret-key"));
    assert_eq!(std::fs::metadata(&auth).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!std::fs::read_to_string(server.home.join("server/models.json")).unwrap().contains("secret"));
    // A key is for the place it was given for.
    let moved = json!({ "provider": "openai", "model": "m1", "base_url": "http://127.0.0.1:2/v1" });
    let (_, kept) = put(&server, "/api/models/mine", moved).await;
    assert_eq!(kept["api_key_set"], false);
    put(&server, "/api/models/mine", model).await;
    assert_eq!(delete(&server, "/api/models/mine").await.0, 200);
    assert!(!std::fs::read_to_string(&auth).unwrap().contains("secret"));
    assert_eq!(server.post("/api/models/mine/test", json!({})).await.0, 404);
    let (status, refused) =
        server.post("/agent/run", json!({ "task": "t", "model_config_name": "mine" })).await;
    assert_eq!(
        (status, &refused["detail"]),
        (422, &json!("`model_config_name`: `mine` is not known; none is stored here."))
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_is_kept_with_all_that_was_said_of_it_or_not_at_all() {
    let server = Server::start(cassette([]), Mode::Default).await;
    let put = async |body: Value| server.ask_as(&server.token, "PUT", "/api/models/own", Some(&body)).await;
    for field in ["temperature", "top_p", "top_k", "max_tokens", "provder"] {
        let mut model = json!({ "provider": "openai", "model": "m" });
        model[field] = json!(1);
        let (status, body) = put(model).await;
        assert_eq!(status, 422, "{field}: {body}");
        assert!(body["detail"].as_str().unwrap().contains(field), "{body}");
    }
    assert_eq!(server.get("/api/models/own").await.0, 404);
    let (status, kept) = put(json!({ "provider": "openai", "model": "m", "api_key": "k-1" })).await;
    assert_eq!(status, 200, "{kept}");
    assert_eq!(server.get("/api/models/own").await, (200, kept.clone()));
    assert_eq!(kept["api_key_set"], true);
    server.stop().await;
}
