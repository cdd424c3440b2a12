//! Members of a request that have no meaning here.
//!
//! A misspelled name would otherwise be accepted in silence, and the run would differ from the one that was wanted. A
//! member that Trae's server knows and this one leaves out on purpose is not a mistake; `docs/server.md` lists those.

use lathe_protocol::list_warnings;
use schemars::JsonSchema;
use serde_json::Value;

/// Left out without loss: sessions have a trajectory and a patch anyway, and there is one agent and no console.
const DROPPED: [&str; 5] = ["trajectory_file", "patch_path", "agent_type", "console_type", "docker_keep"];
/// Left out, and the client should know: the run is not where it expects.
const CONTAINERS: [&str; 4] = ["docker_image", "docker_container_id", "dockerfile_path", "docker_image_file"];
/// Members of an agent mode that the configuration sets instead.
const OF_MODES: [&str; 2] = ["reflection_max_rounds", "review_model_config_name"];
/// Options that are fixed when a session is started.
const OF_SESSIONS: [&str; 8] = [
    "working_dir",
    "must_patch",
    "prompt",
    "model_config_name",
    "agent_mode",
    "agent_mode_config",
    "enable_quality_review",
    "quality_review_rules",
];

/// Describes what is wrong with the members of a request for a run.
pub(crate) fn unknown_of_run<Request: JsonSchema, Mode: JsonSchema>(request: &Value) -> Vec<String> {
    let of_run = unknown::<Request>(request, "", &DROPPED);
    let of_mode = unknown::<Mode>(&request["agent_mode_config"], "agent_mode_config.", &OF_MODES);
    list_warnings(of_run.chain(of_mode))
}

/// The same for a task of a session.
pub(crate) fn unknown_of_task<Request: JsonSchema>(request: &Value) -> Vec<String> {
    let dropped: Vec<&str> = DROPPED.into_iter().chain(OF_SESSIONS).collect();
    list_warnings(unknown::<Request>(request, "", &dropped))
}

/// The same for an agent mode that is to be stored.
pub(crate) fn unknown_of_mode<Mode: JsonSchema>(mode: &Value) -> Vec<String> {
    list_warnings(unknown::<Mode>(mode, "", &OF_MODES))
}

/// The same for another entry that is to be stored.
pub(crate) fn unknown_of_stored<Kept: JsonSchema>(kept: &Value) -> Vec<String> {
    list_warnings(unknown::<Kept>(kept, "", &[]))
}

fn unknown<'a, T: JsonSchema>(
    value: &'a Value,
    before: &'a str,
    dropped: &'a [&'a str],
) -> impl Iterator<Item = String> + use<'a, T> {
    let schema = schemars::schema_for!(T);
    let is_known = move |name: &str| {
        let known = schema.get("properties").and_then(Value::as_object);
        known.is_some_and(|known| known.contains_key(name)) || dropped.contains(&name)
    };
    // A member that is null requests nothing.
    let members = value.as_object().into_iter().flatten();
    let given = members.filter(move |(name, value)| !value.is_null() && !is_known(name));
    given.map(move |(name, _)| match CONTAINERS.contains(&name.as_str()) {
        true => {
            format!("`{before}{name}` is not used: the run works in the folder itself, not in a container.")
        }
        false => format!("`{before}{}` is not known and was not used.", shown(name)),
    })
}

/// A name chosen by a user, for people to read.
fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(64).collect()
}
