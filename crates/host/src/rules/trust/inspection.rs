//! Inspection of the parts of a project's configuration: what they run, and the files that count for that.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::Path;

use lathe_policy::{NamedFiles, TrustItem, named_files};
use lathe_protocol::{DigestBuilder, ItemKind, ItemState};
use lathe_workspace::{
    LocalTree, Pin, WorkspaceError, dangling_link_error, find_program, is_dangling, open_regular,
};

use super::{InspectedItem, LARGEST_TEXT, ProjectPart, WORDS};

pub(super) fn inspect_part(
    tree: &LocalTree,
    root: &Path,
    part: &ProjectPart,
) -> Result<InspectedItem, String> {
    let mut counted = DigestBuilder::default();
    let mut count = |bytes: &[u8]| {
        counted.add(&(bytes.len() as u64).to_be_bytes());
        counted.add(bytes);
    };
    count(part.value.as_bytes());
    let mut shows = part.value.clone();
    if part.kind == ItemKind::Field && part.tools.is_none() {
        return Err("`tools` is missing: the file of its schemas".to_owned());
    }
    let mut text = String::new();
    if let Some(tools) = &part.tools {
        text = text_of(tree, tools)?.ok_or_else(|| format!("{} is not there", tools.display()))?;
        count(text.as_bytes());
        shows.push_str(&format!("\n{}:\n{text}", tools.display()));
    }
    let named = match part.kind {
        ItemKind::Check | ItemKind::Instructions | ItemKind::TraeConfig => named_files(&part.command),
        // The words are passed on unchanged: no shell expands them.
        ItemKind::Field => field_words(root, &part.command)?,
    };
    let pins = pins(tree, root, &named.known)?;
    for pin in &pins {
        count(pin.word.as_bytes());
        count(pin.digest.as_str().as_bytes());
        shows.push_str(&format!("\n{}: {}", pin.word, pin.digest.short()));
    }
    let mut loose: Vec<String> = named.unknown.iter().cloned().collect();
    loose.extend(
        named.unnamed.iter().map(|program| format!("{program} (it runs what its words do not name)")),
    );
    let folders = named.known.iter().filter(|word| *word != "." && root.join(word).is_dir());
    loose.extend(folders.map(|folder| format!("{folder} (a folder)")));
    let loose = loose.iter().map(|what| format!("cannot be tied to the content of a file: {what}")).collect();
    let (kind, name, path) = (part.kind, part.name.clone(), part.path.clone());
    let item = TrustItem { kind, name, path, hash: counted.finish(), shows };
    Ok(InspectedItem { item, state: ItemState::New, text, pins, unpinned: loose })
}

/// The words of a field program, each as it is passed on and also split at `=`. A word that could be a file of the
/// project as well as a program on PATH is refused: it would be unclear which of them runs.
pub(super) fn field_words(root: &Path, command: &str) -> Result<NamedFiles, String> {
    let words = lathe_extend::split_command(command).map_err(|error| error.to_string())?;
    // A program without a slash is searched for on PATH only.
    let skipped = usize::from(words.first().is_some_and(|program| !program.contains('/')));
    let words = words.get(skipped..).unwrap_or_default();
    for word in words.iter().filter(|word| !word.is_empty() && !word.contains('/')) {
        if root.join(word).is_file() && find_program(word, root).is_some() {
            return Err(format!(
                "`{word}` is a file of the project and a program: write `./{word}` or its full path"
            ));
        }
    }
    let parts = words.iter().flat_map(|word| word.split('=').chain([word.as_str()]));
    let known = parts.filter(|part| !part.is_empty()).map(str::to_owned).collect();
    Ok(NamedFiles { known, ..NamedFiles::default() })
}

/// The files of the project that the words of a command name: trust in `sh check.sh` is trust in the content of
/// `check.sh`.
pub(super) fn pins(tree: &LocalTree, root: &Path, words: &BTreeSet<String>) -> Result<Vec<Pin>, String> {
    if words.len() > WORDS {
        return Err(format!("its command has more than {WORDS} words"));
    }
    let mut pins: Vec<Pin> = Vec::new();
    let mut waiting: Vec<String> = words.iter().rev().cloned().collect();
    while let Some(word) = waiting.pop() {
        if pins.len() > WORDS || pins.iter().any(|pin| pin.word == word) {
            continue;
        }
        let Some(pin) = Pin::take(tree, root, &word).map_err(|error| error.to_string())? else { continue };
        // The system runs the interpreter that the first line of a script names.
        waiting.extend(interpreter_words(&pin.path));
        pins.push(pin);
    }
    Ok(pins)
}

/// The words after `#!` in a script's first line; none if it has no such line.
pub(super) fn interpreter_words(path: &Path) -> Vec<String> {
    let mut first = [0; 256];
    let read = open_regular(path).and_then(|mut file| file.read(&mut first)).unwrap_or_default();
    let line = first.get(..read).unwrap_or_default().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = line.strip_prefix(b"#!").unwrap_or_default();
    String::from_utf8_lossy(words).split_whitespace().map(str::to_owned).collect()
}

/// The text of a regular file of the project; none if no file has this name.
pub(crate) fn text_of(tree: &LocalTree, path: &Path) -> Result<Option<String>, String> {
    let file = match tree.open(path) {
        Ok(file) => file,
        Err(error) if is_absent(&error) => {
            return match is_dangling(&tree.root().join(path)) {
                true => Err(dangling_link_error().to_string()),
                false => Ok(None),
            };
        }
        Err(error) => return Err(error.to_string()),
    };
    let mut bytes = Vec::new();
    file.take(LARGEST_TEXT + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST_TEXT {
        return Err(format!("it is larger than {} KiB", LARGEST_TEXT >> 10));
    }
    if bytes.contains(&0) {
        return Err("it is not text".to_owned());
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

pub(super) fn is_absent(error: &WorkspaceError) -> bool {
    let is_no_folder = |source: &std::io::Error| source.kind() == ErrorKind::NotADirectory;
    matches!(error, WorkspaceError::NotFound(_))
        || matches!(error, WorkspaceError::Io { source, .. } if is_no_folder(source))
}
