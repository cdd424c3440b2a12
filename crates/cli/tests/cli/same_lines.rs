//! `connect` prints the same lines as the console of this machine for the same events.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lathe_testkit::{Lathe, RunningLathe, Signal, TempRepo, eventually};
use serde_json::{Value, json};

use crate::lathe;

const WITHIN: Duration = Duration::from_secs(60);

/// A run of which there is to be a journal.
struct Told {
    name: &'static str,
    task: &'static str,
    files: Vec<(&'static str, String)>,
    /// Lines of the cassette after its head.
    recorded: Vec<Value>,
    flags: &'static [&'static str],
}

fn told(name: &'static str, answers: Vec<Value>) -> Told {
    let recorded = answers.into_iter().map(|blocks| json!({ "answer": { "blocks": blocks } })).collect();
    let files = vec![("a.txt", "one\ntwo\n".to_owned())];
    Told { name, task: "Do it.", files, recorded, flags: &["--mode", "full-auto"] }
}

fn say(text: &str) -> Value {
    json!({ "text": { "text": text } })
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "call": { "id": id, "name": name, "arguments": arguments } })
}

fn bash(line: &str) -> Value {
    json!([call("b", "bash", json!({ "command": line }))])
}

fn done(summary: &str) -> Value {
    json!([call("d", "task_done", json!({ "summary": summary }))])
}

fn numbered(word: &str, count: usize) -> String {
    (1..=count).map(|number| format!("{word} {number}\n")).collect()
}

fn many() -> Vec<Told> {
    let view = || json!([say("I look."), call("v", "view", json!({ "path": "a.txt" }))]);
    let write = |text: String| json!([call("w", "write", json!({ "path": "new.txt", "content": text }))]);
    let edit =
        |old: &str| json!([call("e", "edit", json!({ "path": "a.txt", "old_str": old, "new_str": "2" }))]);
    let patch =
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** Add File: b.txt\n+b\n*** End Patch\n";
    let mut all = vec![
        told("plain text", vec![json!([say("It is two lines.\nThat is all.")])]),
        told("Chinese", vec![json!([say("好的，我来看看。")]), done("完成了。")]),
        told("a look", vec![view(), done("It is seen.")]),
        told("a new file", vec![write("x\n".to_owned()), done("Made.")]),
        told("a long file", vec![write(numbered("line", 60)), done("Made.")]),
        told("an edit", vec![view(), edit("two"), done("Edited.")]),
        told("an edit that fails", vec![view(), edit("nowhere"), done("Not edited.")]),
        told("a patch", vec![json!([call("p", "apply_patch", json!({ "patch": patch }))]), done("Patched.")]),
        told("a line", vec![bash("echo hello; cat a.txt"), done("Ran.")]),
        told("a long output", vec![bash("seq 1 40"), done("Counted.")]),
        told("a failure", vec![bash("echo out; echo err >&2; exit 3"), done("Failed.")]),
        told("no line end", vec![bash("printf 'a\\tb'"), done("Printed.")]),
        told("controls", vec![bash("printf '\\033[31mred\\r\\n\\302\\205x\\n'"), done("Odd \u{202e}text.")]),
        told("removed", vec![bash("rm a.txt"), done("Removed.")]),
        told(
            "a thought",
            vec![
                json!([call("t", "think", json!({ "thought": "First this.\nThen that." }))]),
                done("Thought."),
            ],
        ),
        told("an unknown tool", vec![json!([call("u", "fly", json!({ "to": "moon" }))]), done("Stayed.")]),
        told(
            "two calls",
            vec![
                json!([
                    say("Both."),
                    call("v1", "view", json!({ "path": "a.txt" })),
                    call("v2", "view", json!({ "path": "gone.txt" }))
                ]),
                done("Looked."),
            ],
        ),
        Told { flags: &[], ..told("denied", vec![bash("touch made"), done("Was not let.")]) },
        Told {
            flags: &["--mode", "full-auto", "--max-steps", "1"],
            ..told("steps used up", vec![view(), done("Never.")])
        },
        Told { task: "First line.\nSecond line: 第二行。", ..told("a long task", vec![done("Read.")]) },
        told("the model ends", vec![view()]),
        told("a reminder", vec![json!([say("")]), json!([say("Now I answer.")])]),
    ];
    all.push(told("undone", vec![write("x\n".to_owned()), done("To be undone.")]));
    let summary = "<task>looks at the file</task><details>Reads a.txt.</details><tags>EXAMINE_CODE</tags>";
    let mut summed = told("summed up", vec![view(), done("Seen.")]);
    let lane = json!({ "purpose": "lakeview", "answer": { "blocks": [say(summary)] } });
    summed.recorded.extend([lane.clone(), lane]);
    all.push(summed);
    all
}

struct Place {
    parent: TempRepo,
    base: Lathe,
}

impl Place {
    fn cassette(&self, name: &str, recorded: &[Value]) -> PathBuf {
        let head = json!({ "cassette": 1, "toolset": "lathe" });
        let lines: Vec<String> = std::iter::once(&head).chain(recorded).map(Value::to_string).collect();
        let path = self.parent.path().join(format!("{name}.cassette"));
        std::fs::write(&path, lines.join("\n")).unwrap();
        path
    }

    fn run(&self, told: &Told) {
        let name = told.name.replace(' ', "-");
        for (file, text) in &told.files {
            self.parent.write(&format!("{name}/{file}"), text);
        }
        let cassette = self.cassette(&name, &told.recorded);
        let config = self.base.home().join("config.toml");
        std::fs::create_dir_all(self.base.home()).unwrap();
        let lakeview = told.name == "summed up";
        std::fs::write(&config, if lakeview { "[lakeview]\nenabled = true\n" } else { "" }).unwrap();
        let run = self.base.clone().in_dir(self.parent.path().join(&name));
        run.clone().args(["run", told.task]).args(told.flags).arg("--replay").arg(&cassette).run();
        if told.name == "undone" {
            run.args(["undo"]).run().expect_code(0);
        }
        std::fs::write(&config, "").unwrap();
    }

    /// A run that a person ends while a line of it works.
    fn cancelled(&self) {
        self.parent.write("cancelled/a.txt", "one\n");
        let line = json!({ "answer": { "blocks": bash("echo begun; sleep 600") } });
        let cassette = self.cassette("cancelled", &[line]);
        let run = self.base.clone().in_dir(self.parent.path().join("cancelled"));
        let running = run.args(["run", "Wait.", "--mode", "full-auto", "--replay"]).arg(&cassette).spawn();
        running.wait_for_stdout("begun", WITHIN);
        running.kill(Signal::Interrupt);
        assert_eq!(running.wait().code, 130);
    }

    /// A server of all these sessions, whose model asks before it changes something.
    fn serve(&self) -> (RunningLathe, String) {
        let asks = [
            json!([call(
                "q",
                "ask_user",
                json!({ "question": "Tabs or spaces?", "options": ["tabs", "spaces"] })
            )]),
            bash("touch made"),
            done("It is said and made."),
        ];
        let recorded: Vec<Value> =
            asks.iter().map(|blocks| json!({ "answer": { "blocks": blocks } })).collect();
        let cassette = self.cassette("asked", &recorded);
        let serve = self.base.clone().in_dir(self.parent.path());
        let running = serve.args(["serve", "--port", "0", "--json", "--replay"]).arg(&cassette).spawn();
        eventually(WITHIN, "the server is there", || running.stdout_so_far().contains('\n'));
        let said: Value = serde_json::from_str(running.stdout_so_far().lines().next().unwrap()).unwrap();
        let url = said["url"].as_str().unwrap().to_owned();
        (running, url)
    }

    fn connect(&self, url: &str) -> Lathe {
        self.base.clone().args(["connect", url])
    }

    /// Gives the server a task, answers what the model asks, and says whether the line may run.
    fn asked(&self, url: &str, task: &str, consent: &str) {
        let left = |client: &Lathe, seen: &str| {
            let client = client.spawn();
            client.wait_for_stdout(seen, WITHIN);
            client.kill(Signal::Terminate);
            client.wait();
        };
        left(&self.connect(url).arg(task), "waits for an answer");
        let id = self.sessions().into_iter().find(|(_, title)| title == task).unwrap().0;
        let again = self.connect(url).args(["--session", &id]);
        left(&again.clone().stdin("2\n"), "touch made");
        again.stdin(consent).run().expect_code(0);
    }

    /// Each session with its title.
    fn sessions(&self) -> BTreeMap<String, String> {
        let listed = self.base.clone().args(["sessions", "--json"]).run().expect_code(0).stdout;
        let rows: Value = serde_json::from_str(&listed).unwrap();
        let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        rows.as_array().unwrap().iter().map(|row| (text(row, "id"), text(row, "title"))).collect()
    }
}

#[test]
fn connect_prints_what_this_machine_prints_for_the_events_of_twenty_journals_in_both_languages() {
    let place = Place { parent: TempRepo::new(&[]), base: lathe() };
    let all = many();
    all.iter().for_each(|told| place.run(told));
    place.cancelled();
    let (server, url) = place.serve();
    place.asked(&url, "Make it.", "y\n");
    place.asked(&url, "Rather not.", "n, not now\n");
    let sessions = place.sessions();
    assert_eq!(sessions.len(), all.len() + 3, "{sessions:?}");
    let mut there = BTreeMap::new();
    for language in ["en", "zh"] {
        for id in sessions.keys() {
            let connect = place.connect(&url).args(["--session", id]).env("LATHE_LANG", language);
            there.insert((language, id), connect.run().stdout);
        }
    }
    // Who has a session open is waited for.
    server.kill(Signal::Terminate);
    server.wait();
    let mut english = BTreeMap::new();
    for (language, word) in [("en", "task "), ("zh", "任务")] {
        for id in sessions.keys() {
            let here = place.base.clone().args(["watch", id]).env("LATHE_LANG", language);
            let here = here.run().expect_code(0).stdout;
            assert_eq!(there[&(language, id)], here, "{id} {language}");
            assert!(here.starts_with(word), "{id} {language}: {here}");
            if language == "en" {
                english.insert(id.clone(), here);
            } else {
                assert_ne!(Some(&here), english.get(id), "{id}");
            }
        }
    }
    // The journals are as varied as they are meant to be.
    let text: String = english.into_values().collect();
    for piece in [
        "✔ done",
        "✔ answered",
        "✘ cancelled",
        "✘ steps used up",
        "✘ denied",
        "$ seq 1 40",
        "… 28 more lines",
        "exit 3",
        "+line 1\n",
        "-two\n",
        "+++ b/b.txt",
        "<U+001B>[31mred",
        "好的",
        "looks at the file",
        "It is said and made.",
        "begun",
    ] {
        assert!(text.contains(piece), "{piece}: {text}");
    }
}

#[test]
fn connect_prints_the_lines_of_run_while_it_runs() {
    let edits = || {
        let edit = json!({ "path": "a.txt", "old_str": "two", "new_str": "2" });
        vec![
            json!([say("I look.\nThen I edit."), call("v", "view", json!({ "path": "a.txt" }))]),
            json!([call("e", "edit", edit)]),
            done("It is edited."),
        ]
    };
    for language in ["en", "zh"] {
        let place = Place { parent: TempRepo::new(&[]), base: lathe().env("LATHE_LANG", language) };
        let told = told("here", edits());
        std::fs::create_dir_all(place.base.home()).unwrap();
        std::fs::write(place.base.home().join("config.toml"), "[run]\nmode = \"full-auto\"\n").unwrap();
        place.parent.write("here/a.txt", "one\ntwo\n");
        let cassette = place.cassette("here", &told.recorded);
        let run = place.base.clone().in_dir(place.parent.path().join("here"));
        let here = run.args(["run", "Do it.", "--mode", "full-auto", "--replay"]).arg(&cassette).run();
        let here = here.expect_code(0).stdout;
        place.parent.write("there/a.txt", "one\ntwo\n");
        let serve = place.base.clone().in_dir(place.parent.path().join("there"));
        let serve = serve.args(["serve", "--port", "0", "--json", "--replay"]);
        let server = serve.arg(&cassette).spawn();
        eventually(WITHIN, "the server is there", || server.stdout_so_far().contains('\n'));
        let said: Value = serde_json::from_str(server.stdout_so_far().lines().next().unwrap()).unwrap();
        let there = place.connect(said["url"].as_str().unwrap()).arg("Do it.").run().expect_code(0).stdout;
        // What `run` prints besides is about its beginning and its end.
        assert!(here.contains(&there), "{language}: here\n{here}\nthere\n{there}");
        assert!(there.contains("+2\n") && there.ends_with("It is edited.\n"), "{there}");
        drop(server);
    }
}
