//! The configuration as the server sees it, each value with its source; and in the shape of Trae's clients. Keys are not in it.

use std::collections::BTreeMap;

use axum::extract::State;
use lathe_host::{blocking, shown_setting};
use lathe_protocol::Toolset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::{Api, ApiResult, Endpoint, Json, QueryOf};
use crate::app::App;
use crate::error::ApiError;

#[derive(Debug, Deserialize, JsonSchema)]
struct ConfigQuery {
    /// A root of the server or a folder inside one.
    #[serde(default)]
    working_dir: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ConfigRow {
    key: String,
    value: String,
    source: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ConfigRows {
    settings: Vec<ConfigRow>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct General {
    default_provider: Option<String>,
    max_steps: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Provider {
    model: Option<String>,
    base_url: Option<String>,
    api_version: Option<String>,
    api_key_set: bool,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Lakeview {
    model: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AgentConfig {
    general: General,
    provider: Provider,
    tools: Vec<String>,
    enable_lakeview: bool,
    lakeview: Option<Lakeview>,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::get("/api/config", "The settings of a folder, each with its source")
            .query::<ConfigQuery>()
            .response::<ConfigRows>(),
        all,
    )
    .add(
        Endpoint::get("/agent/config", "The settings in Trae's shape")
            .query::<ConfigQuery>()
            .response::<AgentConfig>(),
        trae,
    );
}

fn rows(app: &App, asked: &ConfigQuery) -> Result<Vec<ConfigRow>, ApiError> {
    let folder = app.folder(std::path::Path::new(asked.working_dir.as_deref().unwrap_or_default()))?;
    let settings = blocking(|| app.plans.settings(&folder)).map_err(ApiError::bad)?;
    let text = |row: &Value, name: &str| match row.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let row = |row: &Value| {
        let (key, value) = (text(row, "key"), text(row, "value"));
        // Not even the end of a key is shown.
        let value = if value.starts_with("set (") { "set".to_owned() } else { shown_setting(&value) };
        ConfigRow { key, value, source: text(row, "source") }
    };
    Ok(settings.as_array().map(|rows| rows.iter().map(row).collect()).unwrap_or_default())
}

async fn all(State(app): State<App>, QueryOf(asked): QueryOf<ConfigQuery>) -> ApiResult<ConfigRows> {
    Ok(Json(ConfigRows { settings: rows(&app, &asked)? }))
}

async fn trae(State(app): State<App>, QueryOf(asked): QueryOf<ConfigQuery>) -> ApiResult<AgentConfig> {
    let values: BTreeMap<String, String> =
        rows(&app, &asked)?.into_iter().map(|row| (row.key, row.value)).collect();
    let text = |key: &str| values.get(key).cloned();
    let number = |key: &str| values.get(key).and_then(|value| value.parse().ok());
    let real = |key: &str| values.get(key).and_then(|value| value.parse().ok());
    let toolset = Toolset::ALL.into_iter().find(|set| text("run.toolset").as_deref() == Some(set.as_str()));
    let enabled = text("lakeview.enabled").as_deref() == Some("true");
    Ok(Json(AgentConfig {
        general: General { default_provider: text("model.provider"), max_steps: number("run.max_steps") },
        provider: Provider {
            model: text("model.name"),
            base_url: text("model.base_url"),
            api_version: text("model.api_version"),
            api_key_set: values.contains_key("model.api_key"),
            max_tokens: number("model.max_tokens"),
            temperature: real("model.temperature"),
            top_p: real("model.top_p"),
            top_k: number("model.top_k"),
        },
        tools: app
            .host
            .tools()
            .all_tools(toolset.unwrap_or(Toolset::Lathe))
            .into_iter()
            .map(|(name, _)| name)
            .collect(),
        enable_lakeview: enabled,
        lakeview: enabled.then(|| Lakeview { model: text("lakeview.model") }),
    }))
}
