//! Tools as users see them: their names in two languages, a custom name, and a switch for new sessions.

use std::collections::BTreeMap;

use axum::extract::State;
use lathe_host::blocking;
use lathe_protocol::Toolset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Api, ApiResult, Endpoint, Input, Json, QueryOf};
use crate::app::App;
use crate::error::ApiError;

const FILE: &str = "tools.json";
/// Characters of a custom name.
const NAME_MAX: usize = 64;

/// The Chinese names of the tools; the first nine are the server fork's.
const CHINESE: [(&str, &str); 30] = [
    ("bash", "终端"),
    ("str_replace_based_edit_tool", "文本编辑"),
    ("json_edit_tool", "JSON编辑"),
    ("sequentialthinking", "顺序思考"),
    ("task_done", "任务完成"),
    ("quality_review", "质量审查"),
    ("online_doc_tool", "在线文档"),
    ("mock_edit_tool", "模拟编辑"),
    ("ckg", "代码知识图谱"),
    ("edit", "文本编辑"),
    ("think", "顺序思考"),
    ("code", "代码知识图谱"),
    ("view", "查看"),
    ("search", "搜索"),
    ("glob", "查找文件"),
    ("write", "写入文件"),
    ("apply_patch", "应用补丁"),
    ("todo", "待办清单"),
    ("remember", "记忆"),
    ("ask_user", "询问用户"),
    ("Bash", "终端"),
    ("list_directory", "列出目录"),
    ("read_file", "读取文件"),
    ("read_many_files", "读取多个文件"),
    ("search_file_content", "搜索"),
    ("replace", "文本编辑"),
    ("write_file", "写入文件"),
    ("run_shell_command", "终端"),
    ("save_memory", "记忆"),
    ("write_todos", "待办清单"),
];

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct StoredTool {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    custom_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
}

type StoredTools = BTreeMap<String, StoredTool>;

#[derive(Debug, Deserialize, JsonSchema)]
struct ToolsQuery {
    /// Those of this toolset; of `lathe` and `trae` if left out.
    #[serde(default)]
    toolset: Option<Toolset>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolRow {
    name: String,
    description: String,
    custom_name: Option<String>,
    initial_name_zh: Option<&'static str>,
    is_custom: bool,
    /// True if new sessions have it.
    enabled: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Tools {
    tools: Vec<ToolRow>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ToolConfig {
    name: String,
    /// A name for users; an empty one removes it.
    #[serde(default)]
    custom_name: Option<String>,
    #[serde(default)]
    enabled: Option<bool>,
}

pub(crate) fn add(api: &mut Api) {
    api.add(Endpoint::get("/agent/tools", "The tools").query::<ToolsQuery>().response::<Tools>(), list).add(
        Endpoint::post("/agent/tools/config", "Give a tool a name, or leave it out of new sessions")
            .body::<ToolConfig>()
            .response::<ToolRow>(),
        config,
    );
}

/// Names of tools that new sessions do not have.
pub(crate) fn disabled_tools(app: &App) -> Result<Vec<String>, ApiError> {
    let kept: StoredTools = app.settings.read(FILE)?;
    Ok(kept.into_iter().filter(|(_, kept)| kept.enabled == Some(false)).map(|(name, _)| name).collect())
}

fn rows(app: &App, toolset: Option<Toolset>) -> Result<Vec<ToolRow>, ApiError> {
    let kept: StoredTools = app.settings.read(FILE)?;
    let sets = toolset.map_or_else(|| vec![Toolset::Lathe, Toolset::Trae], |toolset| vec![toolset]);
    let mut rows: Vec<ToolRow> = Vec::new();
    for (name, description) in sets.into_iter().flat_map(|set| app.host.tools().all_tools(set)) {
        if rows.iter().any(|row| row.name == name) {
            continue;
        }
        let kept = kept.get(&name).cloned().unwrap_or_default();
        rows.push(ToolRow {
            initial_name_zh: CHINESE.iter().find(|(known, _)| *known == name).map(|(_, chinese)| *chinese),
            name,
            description,
            custom_name: kept.custom_name,
            is_custom: false,
            enabled: kept.enabled.unwrap_or(true),
        });
    }
    Ok(rows)
}

async fn list(State(app): State<App>, QueryOf(asked): QueryOf<ToolsQuery>) -> ApiResult<Tools> {
    Ok(Json(Tools { tools: blocking(|| rows(&app, asked.toolset))? }))
}

async fn config(State(app): State<App>, Input(asked): Input<ToolConfig>) -> ApiResult<ToolRow> {
    let ToolConfig { name, custom_name, enabled } = asked;
    if custom_name
        .as_ref()
        .is_some_and(|name| name.chars().count() > NAME_MAX || name.chars().any(char::is_control))
    {
        return Err(ApiError::unprocessable(format!("A name has at most {NAME_MAX} characters.")));
    }
    if name == "task_done" && enabled == Some(false) {
        return Err(ApiError::unprocessable("`task_done` ends tasks; it cannot be left out."));
    }
    blocking(|| {
        let is_it = |row: &ToolRow| row.name == name;
        if !Toolset::ALL
            .into_iter()
            .try_fold(false, |found, set| rows(&app, Some(set)).map(|rows| found || rows.iter().any(is_it)))?
        {
            return Err(ApiError::not_found("There is no such tool."));
        }
        app.settings.change(FILE, |kept: &mut StoredTools| {
            let entry = kept.entry(name.clone()).or_default();
            if let Some(custom) = custom_name {
                entry.custom_name = Some(custom).filter(|custom| !custom.trim().is_empty());
            }
            entry.enabled = enabled.or(entry.enabled);
            Ok(())
        })?;
        for set in Toolset::ALL {
            if let Some(row) = rows(&app, Some(set))?.into_iter().find(is_it) {
                return Ok(Json(row));
            }
        }
        Err(ApiError::not_found("There is no such tool."))
    })
}
