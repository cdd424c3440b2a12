//! Images reach the model: on every wire, with a task, after a resume; images that are not shown are reported.

use lathe_testkit::{FakeModel, Fault, Lathe, Script, TempRepo, Wire, call, check_prefix_on, done, say};
use serde_json::{Value, json};

use crate::{bodies, lathe, result, results};

/// A PNG of one pixel, and its base64.
const PNG: &[u8] = b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x0d\x49\x44\x41\x54\x78\xda\x63\x64\x60\xf8\x5f\x0f\x00\x02\x87\x01\x80\xeb\x47\xba\x92\x00\x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";
const BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn repo() -> TempRepo {
    let repo = TempRepo::new(&[("a.txt", "text\n")]);
    repo.write("a.png", PNG);
    repo
}

/// `lathe run` over a wire, allowed to change things.
fn run_on(lathe: Lathe, repo: &TempRepo, model: &FakeModel, wire: Wire) -> Lathe {
    lathe
        .in_dir(repo.path())
        .args(["run", "look at it", "--mode", "full-auto", "--output", "stream-json"])
        .with_wire(model, wire)
}

/// The places of a wire's images in its messages, as pointers into `list`.
fn pictures(wire: Wire, body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(body, &mut |member, value| {
        let picture = match (wire, member) {
            (Wire::Chat, "image_url") => value["url"].as_str(),
            (Wire::Responses, "image_url") => value.as_str(),
            (Wire::Messages, "source") => value["data"].as_str(),
            (Wire::Gemini, "inlineData") => value["data"].as_str(),
            (Wire::Ollama, "images") => value[0].as_str(),
            _ => None,
        };
        found.extend(picture.map(str::to_owned));
    });
    found
}

fn collect(value: &Value, look: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(object) => object.iter().for_each(|(member, value)| {
            look(member, value);
            collect(value, look);
        }),
        Value::Array(values) => values.iter().for_each(|value| collect(value, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The image as a wire writes it.
fn written(wire: Wire) -> String {
    match wire {
        Wire::Chat | Wire::Responses => format!("data:image/png;base64,{BASE64}"),
        Wire::Messages | Wire::Gemini | Wire::Ollama => BASE64.to_owned(),
    }
}

#[test]
fn issue_16_a_viewed_image_is_in_the_next_request_on_every_wire() {
    for wire in Wire::ALL {
        let repo = repo();
        // Two calls in one answer: nothing may stand between their results.
        let script = Script::new()
            .answer(call("c1", "view", json!({ "path": "a.png" })).call(
                "c2",
                "view",
                json!({ "path": "a.txt" }),
            ))
            .answer(call("c3", "view", json!({ "path": "a.txt" })))
            .answer(done("ok"));
        let model = FakeModel::serving(script);
        let events = run_on(lathe(), &repo, &model, wire).run().expect_code(0).events();
        assert_eq!(model.violations(), Vec::<String>::new(), "{}", wire.as_str());
        let told = &results(&events)[0].1;
        assert!(told.contains("PNG image: 1 x 1 pixels"), "{told}");
        let requests = model.requests();
        assert_eq!(pictures(wire, &requests[0].json()), Vec::<String>::new(), "{}", wire.as_str());
        for request in &requests[1..3] {
            assert_eq!(pictures(wire, &request.json()), [written(wire)], "{}", wire.as_str());
        }
        check_prefix_on(wire, &model.bodies()).unwrap();
        // The journal names it and does not hold it.
        assert!(!events.iter().any(|event| event.to_string().contains(BASE64)), "{}", wire.as_str());
        let finished = bodies(&events, "call_finished");
        let attached: Vec<&Value> = finished.iter().filter_map(|body| body["attachments"].get(0)).collect();
        assert_eq!(attached.iter().map(|one| &one["mime"]).collect::<Vec<_>>(), ["image/png"]);
        // On wires whose results are text it follows them, with a line that says where it belongs.
        if matches!(wire, Wire::Chat | Wire::Ollama) {
            let messages = requests[1].messages();
            let last = messages.last().unwrap().to_string();
            assert!(last.contains("The image a.png belongs to the result of call"), "{last}");
            assert_eq!(messages.last().unwrap()["role"], "user");
        }
    }
}

#[test]
fn issue_16_the_reading_tools_of_gemini_show_images() {
    for (name, arguments) in
        [("read_file", json!({ "file_path": "a.png" })), ("read_many_files", json!({ "include": ["*.png"] }))]
    {
        let repo = repo();
        let script = Script::new().answer(call("c1", name, arguments)).answer(say("seen"));
        let model = FakeModel::serving(script);
        run_on(lathe(), &repo, &model, Wire::Gemini).args(["--toolset", "gemini", "--max-steps", "2"]).run();
        assert_eq!(pictures(Wire::Gemini, &model.requests()[1].json()), [BASE64], "{name}");
    }
    // What is not named is left out.
    let repo = repo();
    let script =
        Script::new().answer(call("c1", "read_many_files", json!({ "include": ["**"] }))).answer(say("x"));
    let model = FakeModel::serving(script);
    run_on(lathe(), &repo, &model, Wire::Gemini).args(["--toolset", "gemini", "--max-steps", "2"]).run();
    assert_eq!(pictures(Wire::Gemini, &model.requests()[1].json()), Vec::<String>::new());
}

#[test]
fn issue_16_an_image_that_a_command_of_a_line_views_is_shown() {
    for line in ["view a.png", "for name in a.png; do view \"$name\"; done"] {
        let repo = repo();
        let script = Script::new().answer(call("c1", "Bash", json!({ "command": line }))).answer(say("seen"));
        let model = FakeModel::serving(script);
        run_on(lathe(), &repo, &model, Wire::Messages).args(["--toolset", "bash", "--max-steps", "2"]).run();
        assert_eq!(pictures(Wire::Messages, &model.requests()[1].json()), [BASE64], "{line}");
    }
}

#[test]
fn issue_16_images_of_a_task_are_in_the_first_request_and_after_a_resume() {
    for wire in Wire::ALL {
        let repo = repo();
        let home = lathe();
        let script =
            Script::new().answer(call("c1", "view", json!({ "path": "a.png" }))).answer(say("more?"));
        let model = FakeModel::serving(script);
        run_on(home.clone(), &repo, &model, wire).args(["--image", "a.png", "--max-steps", "2"]).run();
        let before = model.requests();
        assert_eq!(pictures(wire, &before[0].json()), [written(wire)], "{}", wire.as_str());
        assert_eq!(pictures(wire, &before[1].json()), [written(wire), written(wire)], "{}", wire.as_str());

        // The files are gone and garbage is collected: the session has what it showed.
        std::fs::remove_file(repo.join("a.png")).unwrap();
        home.clone().args(["gc"]).run().expect_code(0);
        let again = FakeModel::serving(Script::new().answer(done("ok")));
        let resume = ["resume", "--mode", "full-auto", "--max-steps", "9", "--output", "stream-json"];
        home.clone().in_dir(repo.path()).args(resume).with_wire(&again, wire).run();
        let after = again.requests();
        assert!(!after.is_empty(), "{}", wire.as_str());
        assert_eq!(pictures(wire, &after[0].json()), [written(wire), written(wire)], "{}", wire.as_str());
        let all: Vec<Vec<u8>> =
            [&before[0], &before[1], &after[0]].map(|request| request.body.to_vec()).to_vec();
        check_prefix_on(wire, &all).unwrap();
        // And the journal replays.
        home.clone().args(["replay"]).run().expect_code(0);
    }
}

#[test]
fn issue_16_the_first_request_is_shown_with_its_images() {
    let repo = repo();
    for task in [&["look", "--image", "a.png"][..], &["look at @a.png, please"][..]] {
        let show = ["--show-request", "--model", "fake", "--api-key", "k"];
        let ran = lathe().in_dir(repo.path()).args(["run"]).args(task).args(show).run().expect_code(0);
        assert!(ran.stdout.contains(BASE64), "{}", ran.stdout);
    }
}

#[test]
fn issue_16_an_image_that_is_not_shown_is_told() {
    let repo = repo();
    let mut large = PNG.to_vec();
    large.resize(40 << 20, 0);
    repo.write("large.png", &large);
    repo.write("text.png", "only text\n");
    repo.write("big.png", &large[..6 << 20]);
    let script = Script::new()
        .answer(
            call("c1", "view", json!({ "path": "large.png" }))
                .call("c2", "view", json!({ "path": "text.png" }))
                .call("c3", "view", json!({ "path": "big.png" })),
        )
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let events = run_on(lathe(), &repo, &model, Wire::Messages).run().expect_code(0).events();
    let large = result(&events, "c1");
    assert!(large.contains("larger than 20 MiB, so it is not shown to you"), "{large}");
    assert!(result(&events, "c2").contains("only text"), "{}", result(&events, "c2"));
    let body = model.requests()[1].json();
    assert_eq!(pictures(Wire::Messages, &body), Vec::<String>::new());
    let told = "The image big.png is not shown to you: it has 6291456 bytes, and this model's server takes 3932160 at most.";
    assert!(body.to_string().contains(told), "{body}");

    for (file, reason) in [
        ("large.png", "has 41943040 bytes; an image may have 20971520 at most"),
        ("text.png", "is not a PNG, JPEG, GIF or WebP image by its content"),
        ("missing.png", "cannot be read"),
    ] {
        let run = ["run", "look", "--image", file, "--model", "fake", "--api-key", "k"];
        let ran = lathe().in_dir(repo.path()).args(run).run();
        assert!(ran.code != 0 && ran.stderr.contains(reason), "{file}: {} {}", ran.code, ran.stderr);
    }
}

#[test]
fn issue_16_a_model_that_takes_no_images_is_told_so() {
    for (setting, name) in [(Some("[model]\nsupports_images = false\n"), "fake"), (None, "deepseek-chat")] {
        let repo = repo();
        let lathe = lathe();
        if let Some(setting) = setting {
            std::fs::create_dir_all(lathe.home()).unwrap();
            std::fs::write(lathe.home().join("config.toml"), setting).unwrap();
        }
        let script = Script::new().answer(call("c1", "view", json!({ "path": "a.png" }))).answer(done("ok"));
        let model = FakeModel::serving(script);
        let ran = lathe
            .in_dir(repo.path())
            .args(["run", "look", "--mode", "full-auto", "--image", "a.png", "--model", name])
            .args(["--model-base-url", &model.base_url(), "--api-key", model.key()])
            .run();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for request in model.requests() {
            let body = request.json();
            assert_eq!(pictures(Wire::Chat, &body), Vec::<String>::new());
            assert!(
                body.to_string().contains("a.png is not shown to you: this model takes no images"),
                "{body}"
            );
        }
    }
}

#[test]
fn issue_16_a_session_whose_images_are_refused_goes_on_without_them() {
    let repo = repo();
    let home = lathe();
    let refusal = Fault::status(400, "image input is not supported");
    let model = FakeModel::serving(Script::new().answer(done("ok").always_fails(refusal)));
    let run = ["run", "look", "--mode", "full-auto", "--image", "a.png"];
    let ran = home.clone().in_dir(repo.path()).args(run).with_wire(&model, Wire::Messages).run();
    assert_ne!(ran.code, 0);
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("set model.supports_images = false and resume"), "{told}");

    std::fs::write(home.home().join("config.toml"), "[model]\nsupports_images = false\n").unwrap();
    let model = FakeModel::serving(Script::new().answer(done("ok")));
    let resume = ["resume", "--mode", "full-auto"];
    home.clone().in_dir(repo.path()).args(resume).with_wire(&model, Wire::Messages).run().expect_code(0);
    let body = model.requests()[0].json();
    assert_eq!(pictures(Wire::Messages, &body), Vec::<String>::new());
    assert!(body.to_string().contains("a.png is not shown to you"), "{body}");
}
