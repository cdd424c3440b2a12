//! Requests that name something unknown, and the errors that they get.

use lathe_protocol::Mode;
use serde_json::{Value, json};

use crate::kit::{Server, call, cassette, done};

fn one_step() -> String {
    cassette([json!([done("d1", "done")])])
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_nobody_knows_are_refused_with_those_that_are_known() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    for (field, value, told) in [
        ("tools", json!(["view", "nosuch"]), "there is no tool `nosuch`"),
        ("tools", json!(["nosuch"]), "online_doc_tool"),
        ("mode", json!("yolo"), "full-auto"),
        ("toolset", json!("nobody"), "gemini"),
        ("sandbox", json!("cellar"), "read-only"),
        ("agent_mode", json!("novelist"), "none is stored here"),
        ("model_config_name", json!("mine"), "none is stored here"),
        ("agent_mode_config", json!({ "tool_whitelist": ["nosuch"] }), "there is no tool `nosuch`"),
    ] {
        let mut request = json!({ "task": "t" });
        request[field] = value.clone();
        let (status, refused) = server.post("/agent/run", request.clone()).await;
        assert_eq!(status, 422, "{field} {value}: {refused}");
        assert!(refused["detail"].as_str().unwrap().contains(told), "{field} {value}: {refused}");
        let mut socket = server.socket("").await;
        socket.say(&request).await;
        let error = socket.next().await.unwrap();
        assert_eq!((&error["type"], &error["data"]["message"]), (&json!("error"), &refused["detail"]));
        assert_eq!(socket.closed().await.unwrap().0, 1003);
    }
    assert_eq!(server.get("/api/sessions").await.1, json!([]));
    for tools in
        [json!(["view", "task_done"]), json!(["run_shell_command"]), json!(["bash(git status)"]), json!([])]
    {
        let (status, result) = server.post("/agent/run", json!({ "task": "t", "tools": tools })).await;
        assert_eq!(status, 200, "{tools}: {result}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_nobody_knows_are_told_and_those_of_trae_are_not() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    let of_trae = json!({
        "task": "t", "trajectory_file": "x.json", "patch_path": "x.diff", "agent_type": "trae_agent",
        "console_type": "simple", "docker_keep": true, "docker_image": null,
        "agent_mode_config": { "custom_instructions": "i", "reflection_max_rounds": 3 },
    });
    let (status, result) = server.post("/agent/run", of_trae).await;
    assert_eq!((status, result.get("warnings")), (200, None), "{result}");
    let odd = json!({
        "task": "t", "max_step": 3, "docker_image": "alpine", "agent_mode_config": { "promt": "x" },
    });
    let expected = [
        "`max_step` is not known and was not used.",
        "`docker_image` is not used: the run works in the folder itself, not in a container.",
        "`agent_mode_config.promt` is not known and was not used.",
    ];
    let (status, result) = server.post("/agent/run", odd.clone()).await;
    assert_eq!((status, &result["success"]), (200, &json!(true)));
    assert_eq!(result["warnings"], json!(expected));
    let mut socket = server.socket("").await;
    socket.say(&odd).await;
    let frames = socket.until("end").await;
    let warned: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["type"] == "warning")
        .map(|frame| &frame["data"]["message"])
        .collect();
    assert_eq!(warned, expected);
    let (_, started) = server.post("/agent/interactive/start", json!({ "colour": "red" })).await;
    assert_eq!(started["warnings"], json!(["`colour` is not known and was not used."]));
    let task =
        json!({ "session_id": started["session_id"], "task": "t", "must_patch": true, "colour": "red" });
    let (_, result) = server.post("/agent/interactive/task", task).await;
    assert_eq!(result["warnings"], started["warnings"], "{result}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_inside_is_not_asked_for_whoever_names_it() {
    let server = Server::start(one_step(), Mode::FullAuto).await;
    for url in [
        "http://127.0.0.1:9/v1",
        "http://localhost/v1",
        "http://2130706433/",
        "http://[::1]/",
        "http://169.254.169.254/",
    ] {
        let run = json!({ "task": "t", "model": "m", "model_base_url": url });
        let (status, refused) = server.post("/agent/run", run).await;
        assert_eq!(status, 422, "{url}: {refused}");
        let model = json!({ "provider": "mine", "model": "m", "base_url": url });
        let (status, refused) = server.ask_as(&server.token, "PUT", "/api/models/near", Some(&model)).await;
        assert_eq!(status, 422, "{url}");
        assert!(refused["detail"].as_str().unwrap().contains("--model-host"), "{refused}");
    }
    // A model that was stored when its address was allowed is checked again.
    std::fs::create_dir_all(server.home.join("server")).unwrap();
    let kept = json!({ "near": { "provider": "mine", "model": "m", "base_url": "http://127.0.0.1:9/v1" } });
    std::fs::write(server.home.join("server/models.json"), kept.to_string()).unwrap();
    let (_, tested) = server.post("/api/models/near/test", json!({})).await;
    assert!(tested["ok"] == false && tested["detail"].as_str().unwrap().contains("is refused"), "{tested}");
    assert_eq!(server.post("/agent/run", json!({ "task": "t", "model_config_name": "near" })).await.0, 422);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_tells_what_was_approved_and_the_title_and_a_run_that_is_not_there_is_not_found() {
    let write = json!({ "path": "b.txt", "content": "two\n" });
    let answers = [
        json!([call("w1", "write", write.clone())]),
        json!([call("w2", "write", write)]),
        json!([done("d", "done")]),
    ];
    let server = Server::start(cassette(answers), Mode::Default).await;
    let mut socket = server.run("Write it.").await;
    let asked = socket.until("approval").await.pop().unwrap();
    // Names are those of the workspace.
    let diff = asked["data"]["what"]["diff"].as_str().unwrap();
    assert!(diff.starts_with("--- /dev/null\n+++ b/b.txt\n@@"), "{diff}");
    let number = &asked["data"]["question"];
    socket.say(&json!({ "type": "approve", "call_id": "w1", "question": number, "answer": "once" })).await;
    socket.until("receipt").await;
    let asked = loop {
        let asked = socket.until("approval").await.pop().unwrap();
        if asked["data"]["state"] == "asked" {
            break asked;
        }
    };
    let number = &asked["data"]["question"];
    socket.say(&json!({ "type": "approve", "call_id": "w2", "question": number, "answer": "no" })).await;
    let frames = socket.until("end").await;
    let id = frames.iter().find_map(|frame| frame["session_id"].as_str()).unwrap().to_owned();
    let export = format!("/api/sessions/{id}/export?format=html");
    let page = server.get(&export).await.1;
    let page = page.as_str().unwrap();
    assert!(page.contains("<h1>Write it.</h1>"));
    assert_eq!((page.matches("<b>approved</b>").count(), page.matches("<b>denied</b>").count()), (1, 1));
    assert_eq!(page.matches(">denied</span>").count(), 1);
    let (status, _) =
        server.post(&format!("/api/sessions/{id}/rename"), json!({ "title": "The other name" })).await;
    assert_eq!(status, 200);
    let page = server.get(&export).await.1;
    let page = page.as_str().unwrap();
    assert!(page.contains("<h1>The other name</h1>") && page.contains("<title>The other name</title>"));
    assert!(page.contains("Write it."), "the task is still told");
    let trajectory = format!("/api/sessions/{id}/trajectory");
    assert_eq!(server.get(&format!("{trajectory}?run=1")).await.0, 200);
    let (status, refused) = server.get(&format!("{trajectory}?run=9")).await;
    assert_eq!((status, &refused["code"]), (404, &json!("not_found")), "{refused}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_is_not_known_at_an_address_is_told_in_words() {
    let server = Server::start(cassette([]), Mode::Default).await;
    for (method, path) in [("DELETE", "/api/models"), ("PUT", "/agent/run"), ("POST", "/api/sessions")] {
        let (status, body) = server.ask_as(&server.token, method, path, Some(&json!({}))).await;
        assert_eq!((status, &body["code"]), (405, &json!("wrong_method")), "{method} {path}: {body}");
        assert!(body["detail"].as_str().unwrap().contains("/openapi.json"), "{body}");
    }
    server.stop().await;
}
