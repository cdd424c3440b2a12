//! Loading: files, variables and flags become one [`Config`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lathe_protocol::Toolset;

use crate::check::{Checked, Leaf, Leaves, ReadingStrictness, TreeAuthor, check};
use crate::foreign::{ForeignEndpoints, TrustedTrae, add_keys};
use crate::format::{Misread, ProjectFiles, parse_json, parse_toml, parse_yaml, read};
use crate::merge::{Layer, Variables, merge, object, origins};
use crate::part::ConfigPart;
use crate::problem::{ConfigErrors, ConfigFault, Origin, Problem, ValueSource};
use crate::schema::fixed_keys;
use crate::secret::Secret;
use crate::sections::Settings;
use crate::show::flatten;
use crate::trae;
use crate::tree::{Node, TreeEntry, TreeValue, spell, under};

const TRAE_VARIABLE: &str = "TRAE_CONFIG_FILE";
const FOR_A_PROJECT: &str = "set it in your own file, by a variable or by a flag";
const FOR_A_TRAE_FILE: &str = "name this file with --config-file";

/// The keys that hold lists of tools.
const TOOL_LISTS: [[&str; 2]; 3] = [["tools", "exclude"], ["tools", "allowed"], ["run", "tools"]];

/// Checks an entry of a list of tools and reports what is wrong with it; the names are those of field domains.
pub type CheckTool = dyn Fn(&str, &BTreeSet<String>) -> Result<(), String>;

/// The sources to read. A file that is named here need not exist, except `config_file`.
pub struct Inputs<'a> {
    /// `$LATHE_HOME/config.toml`.
    pub user_file: Option<PathBuf>,
    /// `.lathe/config.toml` of the project.
    pub project_file: Option<PathBuf>,
    /// The file of `--config-file`: a Trae file, or one of ours if it ends in `.toml`.
    pub config_file: Option<NamedFile<'a>>,
    /// A Trae file that was not named: `trae_config.yaml` in the working folder. It counts as the project's.
    pub trae_file: Option<PathBuf>,
    /// The same file, if the user trusts it. It may then set everything that a named one may set, but its addresses
    /// get no key from any other source.
    pub trusted_trae: Option<TrustedTrae<'a>>,
    /// The folder that the project's files are read in.
    pub project: &'a ProjectFiles,
    /// Entries of the project's file that the user trusts.
    pub trusted: &'a [ConfigPart],
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Names of the providers whose `<NAME>_API_KEY` is their key.
    pub known_providers: &'a [&'a str],
    /// Reports why an entry of a list of tools means nothing, given the names of the fields.
    pub check_tool: &'a CheckTool,
    pub flags: Vec<Flag>,
}

/// A configuration file that the user named.
#[derive(Debug, Clone, Copy)]
pub enum NamedFile<'a> {
    /// A file of the user's own choice: it is opened through its links.
    Path(&'a Path),
    /// A file that was opened, checked and read already. Its name is not opened again.
    Read { path: &'a Path, text: &'a str },
}

impl<'a> NamedFile<'a> {
    pub fn path(self) -> &'a Path {
        match self {
            Self::Path(path) | Self::Read { path, .. } => path,
        }
    }

    /// The text of this file. No other file is opened for one that was read already.
    fn text(self, asked: &Path) -> Result<Option<String>, ConfigFault> {
        match self {
            Self::Path(_) => read(asked),
            Self::Read { path, text } => Ok((asked == path).then(|| text.to_owned())),
        }
    }
}

/// A value from the command line.
#[derive(Clone)]
pub struct Flag {
    key: String,
    value: serde_json::Value,
    flag: String,
}

impl Flag {
    /// `Flag::new("run.mode", "plan", "--mode")`. A text is read as the key wants it.
    pub fn new(key: impl Into<String>, value: impl Into<serde_json::Value>, flag: impl Into<String>) -> Self {
        Self { key: key.into(), value: value.into(), flag: flag.into() }
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn value(&self) -> &serde_json::Value {
        &self.value
    }
}

/// The configuration, with the origin of every value.
#[derive(Debug, Clone)]
pub struct Config {
    pub settings: Settings,
    /// By the whole key, such as `model.name`, for every value there is, defaults included.
    pub origins: BTreeMap<String, Origin>,
    pub warnings: Vec<Problem>,
    /// Entries of the project's file that count with trust only, trusted or not.
    pub parts: Vec<ConfigPart>,
    /// Secrets in sections that nothing reads, each with its name.
    unread: Vec<(String, Secret)>,
}

impl Config {
    /// Every key and other secret there is, also of models and sections that are not used, each with a name.
    pub fn keys(&self) -> Vec<(String, &Secret)> {
        let unread = self.unread.iter().map(|(name, secret)| (name.clone(), secret));
        self.settings.keys().into_iter().chain(unread).collect()
    }
}

/// Reads and merges everything. All errors are reported at once.
pub fn load(inputs: Inputs<'_>) -> Result<Config, ConfigErrors> {
    let mut loader = Loader::default();
    if let Some(path) = &inputs.user_file {
        loader.own_file(path, &read, ValueSource::User(path.clone()), TreeAuthor::User);
    }
    loader.foreign_file(&inputs);
    if let Some(path) = &inputs.project_file
        && !same_file(path, inputs.user_file.as_deref())
    {
        let free = loader.unused_by_user(path, inputs.trusted);
        let speaker = TreeAuthor::Project { instead: FOR_A_PROJECT, trusted: &free };
        loader.own_file(path, &|path| inputs.project.read(path), ValueSource::Project(path.clone()), speaker);
    }
    loader.variables(inputs.env);
    loader.flags(&inputs.flags);

    loader.check_tools(inputs.check_tool);
    let foreign = loader.foreign.take();
    let variables =
        Variables { env: inputs.env, known_providers: inputs.known_providers, foreign: foreign.as_ref() };
    let leaves = merge(&loader.layers, &variables, &mut loader.warnings);
    let mut settings = loader.settings(&leaves);
    if let (Some(settings), Some(foreign)) = (&mut settings, &foreign) {
        let chosen = leaves.get(["model".to_owned(), "base_url".to_owned()].as_slice());
        let owners = chosen.filter(|leaf| leaf.origin.source != *foreign);
        let owners: Vec<String> =
            owners.and_then(|leaf| leaf.value.as_str().map(str::to_owned)).into_iter().collect();
        settings.foreign = ForeignEndpoints::of(&loader.layers, foreign, &owners);
    }
    let traes_toolset = settings.as_mut().and_then(|settings| traes_toolset(settings, &leaves));
    if let Some(settings) = &settings {
        loader.warnings.extend(unusable(settings, &leaves, inputs.known_providers));
    }
    let warnings = without_repeats(loader.warnings);
    match settings {
        Some(settings) if loader.errors.is_empty() => {
            let mut origins = origins(&leaves);
            origins.extend(traes_toolset.map(|origin| ("run.toolset".to_owned(), origin)));
            for (key, _) in flatten(&settings) {
                origins.entry(key).or_insert(Origin { source: ValueSource::Default, line: None });
            }
            Ok(Config { settings, origins, warnings, parts: loader.parts, unread: loader.unread })
        }
        _ => Err(ConfigErrors { errors: without_repeats(loader.errors), warnings }),
    }
}

/// Gives the user of a Trae file Trae's tools, unless a toolset is named. Its origin is the file.
fn traes_toolset(settings: &mut Settings, leaves: &Leaves) -> Option<Origin> {
    let leaf = |key: &str| leaves.iter().find(|(path, _)| spell(path) == key).map(|(_, leaf)| leaf);
    let is_traes = |leaf: &&Leaf| matches!(leaf.origin.source, ValueSource::Trae(_));
    let trae_leaf = leaf("run.tools").or_else(|| leaf("model.provider")).filter(is_traes);
    let origin = trae_leaf.filter(|_| leaf("run.toolset").is_none())?.origin.clone();
    settings.run.toolset = Toolset::Trae;
    Some(origin)
}

/// Problems of settings that are well formed but with which no run can work, or which silently remove something.
fn unusable(settings: &Settings, leaves: &Leaves, known_providers: &[&str]) -> Vec<Problem> {
    let leaf = |key: &str| leaves.iter().find(|(path, _)| spell(path) == key).map(|(_, leaf)| leaf);
    let mut found = Vec::new();
    let mut tell = |leaf: &Leaf, key: &str, why: String| {
        let Origin { source, line } = leaf.origin.clone();
        found.push(Problem { source, line, fault: ConfigFault::Tool { key: key.to_owned(), why } });
    };
    let kind = settings.provider_kind().unwrap_or_default();
    let is_known = known_providers.iter().any(|known| known.eq_ignore_ascii_case(kind));
    if let Some(leaf) = leaf("model.provider")
        && !is_known
        && settings.model.base_url.is_none()
    {
        let why = format!("`{kind}` is not a provider that Lathe knows, so it needs a base_url");
        tell(leaf, "model.provider", why);
    }
    if let Some(tools) = leaf("run.tools").filter(|leaf| matches!(leaf.origin.source, ValueSource::Trae(_)))
        && settings.tools.discovery_command.is_some()
        && !settings.run.tools.iter().flatten().any(|name| name.starts_with("discovered_tool"))
    {
        let why = "the list leaves out the tools of `tools.discovery_command`; name them in it".to_owned();
        tell(tools, "run.tools", why);
    }
    found
}

/// Tells whether two paths are one file: in the home folder the project's file may be the user's own.
fn same_file(path: &Path, other: Option<&Path>) -> bool {
    let Some(other) = other else { return false };
    match (path.canonicalize(), other.canonicalize()) {
        (Ok(path), Ok(other)) => path == other,
        _ => path == other,
    }
}

/// Reports in one line all keys of a foreign file that nothing reads.
fn in_one_line(problems: Vec<Problem>, source: &ValueSource) -> Vec<Problem> {
    let mut left_out = Vec::new();
    let mut others = Vec::new();
    for problem in problems {
        match problem.fault {
            ConfigFault::NotYet(key) => left_out.push(key),
            _ => others.push(problem),
        }
    }
    if !left_out.is_empty() {
        others.push(Problem { source: source.clone(), line: None, fault: ConfigFault::LeftOut(left_out) });
    }
    others
}

/// Removes repeated problems. One cause may be found twice: a Trae model is both the agent's and one of `models`.
fn without_repeats(problems: Vec<Problem>) -> Vec<Problem> {
    let mut once: Vec<Problem> = Vec::new();
    for problem in problems {
        if !once.contains(&problem) {
            once.push(problem);
        }
    }
    once
}

/// A way to read a file; none if there is no such file.
type FileReadFn<'a> = dyn Fn(&Path) -> Result<Option<String>, ConfigFault> + 'a;

#[derive(Default)]
struct Loader {
    layers: Vec<Layer>,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    parts: Vec<ConfigPart>,
    unread: Vec<(String, Secret)>,
    /// The Trae file that is trusted and not named.
    foreign: Option<ValueSource>,
}

impl Loader {
    /// The parts whose names the user's file does not use: a project adds entries and replaces none.
    fn unused_by_user(&mut self, project: &Path, trusted: &[ConfigPart]) -> Vec<ConfigPart> {
        let mut free = Vec::new();
        for part in trusted {
            let mut known = self.layers.iter().flat_map(|layer| layer.leaves.keys());
            if !known.any(|path| path.starts_with(&[part.table.clone(), part.name.clone()])) {
                free.push(part.clone());
                continue;
            }
            let fault = ConfigFault::Refused {
                key: under(&part.table, &part.name),
                reason: "your own file has one of this name".to_owned(),
            };
            self.warnings.push(Problem {
                source: ValueSource::Project(project.to_owned()),
                line: part.line,
                fault,
            });
        }
        free
    }

    /// Checks every list of tools against the tools that exist: an entry without a match would deny nothing.
    fn check_tools(&mut self, check: &CheckTool) {
        let keys = self.layers.iter().flat_map(|layer| layer.leaves.keys());
        let own = keys.filter(|path| path.first().is_some_and(|table| table == "field"));
        let own = own.filter_map(|path| path.get(1).cloned());
        let parts = self.parts.iter().filter(|part| part.table == "field").map(|part| part.name.clone());
        let fields: BTreeSet<String> = own.chain(parts).collect();
        let (mut errors, mut warnings) = (Vec::new(), Vec::new());
        for layer in &self.layers {
            for (path, leaf) in &layer.leaves {
                if !TOOL_LISTS.iter().any(|list| path.iter().eq(list)) {
                    continue;
                }
                for entry in leaf.value.as_array().into_iter().flatten().filter_map(|entry| entry.as_str()) {
                    let Err(why) = check(entry, &fields) else { continue };
                    let Origin { source, line } = leaf.origin.clone();
                    let fault = ConfigFault::Tool { key: path.join("."), why };
                    // A tool that Trae has and Lathe has not cannot be corrected in a file of Trae's.
                    let is_traes = matches!(source, ValueSource::Trae(_));
                    let problems = if is_traes { &mut warnings } else { &mut errors };
                    problems.push(Problem { source, line, fault });
                }
            }
        }
        self.errors.extend(errors);
        self.warnings.extend(warnings);
    }

    fn layer(&mut self, source: ValueSource, leaves: Leaves) {
        self.layers.push(Layer { source, leaves, made_for: None, project: None });
    }

    fn error(&mut self, source: &ValueSource, line: Option<u32>, fault: ConfigFault) {
        self.errors.push(Problem { source: source.clone(), line, fault });
    }

    /// A file in our format. Returns whether it exists.
    fn own_file(
        &mut self,
        path: &Path,
        read: &FileReadFn<'_>,
        source: ValueSource,
        speaker: TreeAuthor<'_>,
    ) -> bool {
        let text = match read(path) {
            Ok(Some(text)) => text,
            Ok(None) => return false,
            Err(fault) => {
                self.error(&source, None, fault);
                return true;
            }
        };
        match parse_toml(&text) {
            Ok(tree) => {
                let checked = check(&tree, &source, ReadingStrictness::Exact, speaker);
                self.take_checked(source, checked);
                if let Some(last) = self.layers.last_mut() {
                    last.project = speaker.instead();
                }
            }
            Err(misreads) => {
                for Misread { line, fault } in misreads {
                    self.error(&source, line, fault);
                }
            }
        }
        true
    }

    /// Takes the problems as errors, except that of a project that asks for too much.
    fn take_checked(&mut self, source: ValueSource, checked: Checked) {
        let is_refusal = |problem: &Problem| matches!(problem.fault, ConfigFault::Refused { .. });
        let (refusals, errors): (Vec<_>, Vec<_>) = checked.problems.into_iter().partition(is_refusal);
        self.warnings.extend(refusals);
        self.parts.extend(checked.parts);
        self.unread.extend(checked.unread);
        self.errors.extend(errors);
        self.layer(source, checked.leaves);
    }

    /// The one foreign file: named by flag, named by variable, or found.
    fn foreign_file(&mut self, inputs: &Inputs<'_>) {
        let variable = (inputs.env)(TRAE_VARIABLE).filter(|path| !path.is_empty());
        let variable = variable.map(PathBuf::from);
        let named = match inputs.config_file {
            Some(file) => Some((file, "--config-file")),
            None => variable.as_deref().map(|path| (NamedFile::Path(path), TRAE_VARIABLE)),
        };
        match (named, inputs.trusted_trae, &inputs.trae_file) {
            (Some((file, named_by)), _, _) => {
                let path = file.path();
                let own = path.extension().is_some_and(|end| end == "toml");
                let read = |path: &Path| file.text(path);
                let found = if own {
                    self.own_file(path, &read, ValueSource::User(path.to_owned()), TreeAuthor::User)
                } else {
                    self.trae_file(path, &read, TreeAuthor::User, &[])
                };
                if !found {
                    self.error(
                        &ValueSource::Trae(path.to_owned()),
                        None,
                        ConfigFault::ConfigFileNotFound { named_by },
                    );
                }
            }
            (None, Some(file), _) => {
                let text = |asked: &Path| Ok((asked == file.path).then(|| file.text.to_owned()));
                self.trae_file(file.path, &text, TreeAuthor::User, file.keys);
                self.foreign = Some(ValueSource::Trae(file.path.to_owned()));
            }
            (None, None, Some(path)) => {
                let speaker = TreeAuthor::Project { instead: FOR_A_TRAE_FILE, trusted: &[] };
                self.trae_file(path, &|path| inputs.project.read(path), speaker, &[]);
            }
            (None, None, None) => {}
        }
    }

    /// Returns true if such a file, or its older form, exists. `keys` are those of the `.env` next to it.
    fn trae_file(
        &mut self,
        path: &Path,
        read: &FileReadFn<'_>,
        speaker: TreeAuthor<'_>,
        keys: &[(String, Secret)],
    ) -> bool {
        let (path, text) = match (read(path).transpose(), trae::older_form(path)) {
            (Some(text), _) => (path.to_owned(), text),
            (None, None) => return false,
            (None, Some(json)) => {
                let Some(text) = read(&json).transpose() else { return false };
                self.warnings.push(Problem {
                    source: ValueSource::Trae(path.to_owned()),
                    line: None,
                    fault: ConfigFault::JsonInstead(json.clone()),
                });
                (json, text)
            }
        };
        let source = ValueSource::Trae(path.clone());
        let mapped = match read_trae(&path, text, &source) {
            Ok(mapped) => mapped,
            Err(Misread { line, fault }) => trae::Mapped {
                tree: Node::table(Vec::new()),
                errors: vec![Problem { source: source.clone(), line, fault }],
                warnings: Vec::new(),
                made_for: None,
            },
        };
        self.warnings.extend(mapped.warnings);
        let unusable = !mapped.errors.is_empty();
        match speaker {
            TreeAuthor::User => self.errors.extend(mapped.errors),
            TreeAuthor::Project { .. } => self.warnings.extend(mapped.errors),
        }
        if unusable {
            if !speaker.is_user() {
                self.warnings.push(Problem { source, line: None, fault: ConfigFault::Ignored });
            }
            return true;
        }
        let mut tree = mapped.tree;
        add_keys(&mut tree, keys);
        // A project's names for models do not count, and its agent's model is in `model` already.
        if !speaker.is_user()
            && let TreeValue::Table(entries) = &mut tree.value
        {
            entries.retain(|entry| entry.key != "models");
        }
        let checked = check(&tree, &source, ReadingStrictness::Lenient, speaker);
        self.unread.extend(checked.unread);
        self.warnings.extend(in_one_line(checked.problems, &source));
        self.layers.push(Layer {
            source,
            leaves: checked.leaves,
            made_for: mapped.made_for.filter(|_| !speaker.is_user()),
            project: speaker.instead(),
        });
        true
    }

    fn variables(&mut self, env: &dyn Fn(&str) -> Option<String>) {
        for (path, field) in fixed_keys() {
            let Some(variable) = &field.variable else { continue };
            let Some(value) = env(variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            let source = ValueSource::Environment(variable.clone());
            let parts: Vec<&str> = path.iter().map(String::as_str).collect();
            self.add_value(source, &parts, Node::text(value));
        }
    }

    fn flags(&mut self, flags: &[Flag]) {
        for flag in flags {
            let source = ValueSource::Flag(flag.flag.clone());
            let parts: Vec<&str> = flag.key.split('.').collect();
            self.add_value(source, &parts, Node::from(&flag.value));
        }
    }

    /// A layer of one value, joined to the previous one if that has the same rank: values that were given together,
    /// such as a provider and its model, are judged together.
    fn add_value(&mut self, source: ValueSource, path: &[&str], value: Node) {
        let tree = path.iter().rev().fold(value, |node, part| Node::table(vec![TreeEntry::new(*part, node)]));
        let checked = check(&tree, &source, ReadingStrictness::Lenient, TreeAuthor::User);
        self.errors.extend(checked.problems);
        match self.layers.last_mut() {
            Some(last) if std::mem::discriminant(&last.source) == std::mem::discriminant(&source) => {
                last.leaves.extend(checked.leaves);
            }
            _ => self.layer(source, checked.leaves),
        }
    }

    fn settings(&mut self, leaves: &Leaves) -> Option<Settings> {
        match serde_path_to_error::deserialize(object(leaves)) {
            Ok(settings) => Some(settings),
            // The schema accepts only what fits, so this is a mistake of our own, with its place.
            Err(error) => {
                let key = error.path().to_string();
                let origin = origins(leaves).remove(&key);
                let fault = ConfigFault::WrongValue {
                    key,
                    expected: "a value that fits".to_owned(),
                    found: "another".to_owned(),
                    suggestion: None,
                };
                let (source, line) = match origin {
                    Some(origin) => (origin.source, origin.line),
                    None => (ValueSource::Default, None),
                };
                self.error(&source, line, fault);
                None
            }
        }
    }
}

fn read_trae(
    path: &Path,
    text: Result<String, ConfigFault>,
    source: &ValueSource,
) -> Result<trae::Mapped, Misread> {
    let text = text.map_err(|fault| Misread { line: None, fault })?;
    Ok(if path.extension().is_some_and(|end| end == "json") {
        trae::map_legacy(&parse_json(&text)?, source)
    } else {
        trae::map_yaml(&parse_yaml(&text)?, source)
    })
}
