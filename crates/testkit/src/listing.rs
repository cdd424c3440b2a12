//! A complete listing of the files of a tree, to compare it before and after.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;

/// The thing at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingEntry {
    /// The whole `st_mode`.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Of a file; of a link its target; of a folder, pipe, socket or device nothing.
    pub content: Vec<u8>,
    /// Extended attributes by name, as `getfattr -d -m -` prints them.
    pub attributes: BTreeMap<String, Vec<u8>>,
    /// The other names of the file in the tree (hard links).
    pub names: Vec<String>,
}

/// Lists a tree, by paths from its root. Git's own data is left out.
pub fn listing(root: &Path) -> BTreeMap<String, ListingEntry> {
    let mut found = BTreeMap::new();
    let mut groups: HashMap<(u64, u64), Vec<String>> = HashMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let meta = path.symlink_metadata().unwrap();
            let kind = meta.file_type();
            let content = if kind.is_symlink() {
                std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if kind.is_file() {
                groups.entry((meta.dev(), meta.ino())).or_default().push(name.clone());
                std::fs::read(&path).unwrap()
            } else if kind.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else {
                assert!(
                    kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device()
                );
                Vec::new()
            };
            let (mode, uid, gid) = (meta.mode(), meta.uid(), meta.gid());
            let attributes = attributes(&path);
            found.insert(name, ListingEntry { mode, uid, gid, content, attributes, names: Vec::new() });
        }
    }
    for mut group in groups.into_values().filter(|group| group.len() > 1) {
        group.sort();
        for name in &group {
            let others = group.iter().filter(|other| *other != name).cloned().collect();
            found.get_mut(name).unwrap().names = others;
        }
    }
    found
}

/// The extended attributes of a path itself. A file system without any has none.
#[cfg(target_os = "linux")]
fn attributes(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut buffer = vec![0; 1 << 16];
    let Ok(len) = rustix::fs::llistxattr(path, &mut buffer[..]) else { return BTreeMap::new() };
    let names = buffer[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let names: Vec<String> = names.map(|name| String::from_utf8(name.to_vec()).unwrap()).collect();
    let read = |name: String| {
        let mut value = vec![0; 1 << 16];
        let len = rustix::fs::lgetxattr(path, name.as_str(), &mut value[..]).ok()?;
        value.truncate(len);
        Some((name, value))
    };
    names.into_iter().filter_map(read).collect()
}

#[cfg(not(target_os = "linux"))]
fn attributes(_: &Path) -> BTreeMap<String, Vec<u8>> {
    BTreeMap::new()
}

/// The names that are not the same in two trees, which is less to read than all that is in them.
pub fn differing_paths<T: PartialEq>(a: &BTreeMap<String, T>, b: &BTreeMap<String, T>) -> Vec<String> {
    let all = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    all.filter(|name| a.get(*name) != b.get(*name)).cloned().collect()
}
