//! Content that git put into a work tree from commits that were there before a session.
//!
//! A checkout, a merge or a reset writes protected names too, with what a commit of the user's has at them. The proof
//! of that is not in the work tree, nor in the index or the references, which a line can write: the object's name is
//! computed from the content, a commit whose own object is old must have it at this path, and objects are known to be
//! old by their names, listed before the first line of the session.
//!
//! Rejected: the times of objects (git renews them, and a second name of the file changes them), and the index (a
//! line can add anything to it).

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use lathe_git::ContentRules;

use crate::git::Git;
use crate::repository::Repositories;

/// The maximum number of loose objects that are listed.
const MOST: usize = 200_000;

/// The maximum number of references whose commits are searched.
const MOST_NAMES: usize = 64;

/// The objects of the repositories of a tree at one moment.
#[derive(Debug, Default)]
pub struct ObjectsBefore {
    loose: HashSet<String>,
    /// The indexes of packs, each with the time of its last change, which no process can set.
    packs: Vec<(PathBuf, i64, i64)>,
}

impl Repositories {
    /// The objects that are there now.
    pub fn objects_now(&self) -> ObjectsBefore {
        let mut found = ObjectsBefore::default();
        self.folders().for_each(|folder| found.add(&folder.join("objects")));
        found
    }
}

impl ObjectsBefore {
    fn add(&mut self, objects: &Path) {
        for folder in fs::read_dir(objects).into_iter().flatten().flatten() {
            let first = folder.file_name().to_string_lossy().into_owned();
            if first.len() != 2 || self.loose.len() >= MOST {
                continue;
            }
            let names = fs::read_dir(folder.path()).into_iter().flatten().flatten();
            self.loose.extend(names.map(|one| format!("{first}{}", one.file_name().to_string_lossy())));
        }
        for pack in fs::read_dir(objects.join("pack")).into_iter().flatten().flatten() {
            let path = pack.path();
            if let (Some("idx"), Ok(found)) = (path.extension().and_then(|end| end.to_str()), pack.metadata())
            {
                self.packs.push((path, found.ctime(), found.ctime_nsec()));
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.loose.contains(name) || self.packs.iter().any(|pack| is_in_pack(pack, name).unwrap_or_default())
    }

    /// Tells whether a commit from before has a regular file with this content at a path.
    pub fn has_at(&self, path: &Path, content: &[u8]) -> bool {
        let name = object_name(content);
        self.has(&name)
            && Query::of(path).is_some_and(|query| {
                let commits =
                    query.commits().into_iter().filter(|commit| self.has(commit)).collect::<Vec<_>>();
                query.objects_at(&commits).iter().flatten().any(|found| *found == name)
            })
    }

    /// Tells whether the commit that is checked out is from before, and has nothing at a path.
    pub fn lacks(&self, path: &Path) -> bool {
        let Some(query) = Query::of(path) else { return false };
        let Some(head) = query.resolve(&["HEAD"]).into_iter().flatten().next() else { return false };
        self.has(&head) && query.objects_at(&[head]) == [None]
    }
}

/// Queries about one path of a work tree.
struct Query {
    git: Git,
    /// The path from the folder of the query.
    below: String,
}

impl Query {
    fn of(path: &Path) -> Option<Self> {
        let folder = path.ancestors().skip(1).find(|folder| folder.is_dir())?;
        let below = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
        (!below.contains('\n')).then(|| Self { git: Git::at(folder), below })
    }

    /// The commits that a command of git may have taken content from.
    fn commits(&self) -> Vec<String> {
        let near = ["HEAD", "HEAD^1", "HEAD^2", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REBASE_HEAD"];
        let mut found: Vec<String> = self.resolve(&near).into_iter().flatten().collect();
        let count = format!("--count={MOST_NAMES}");
        let listed =
            self.git.run(ContentRules::Bytes, &["for-each-ref", &count, "--format=%(objectname)"], None);
        let listed = String::from_utf8_lossy(&listed.unwrap_or_default()).into_owned();
        found.extend(listed.lines().map(str::to_owned));
        found
    }

    /// The object that each commit has at the path.
    fn objects_at(&self, commits: &[String]) -> Vec<Option<String>> {
        let names: Vec<String> = commits.iter().map(|commit| format!("{commit}:./{}", self.below)).collect();
        self.resolve(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The full names of objects.
    fn resolve(&self, names: &[&str]) -> Vec<Option<String>> {
        let input = names.iter().flat_map(|name| [name, "\n"]).collect::<String>().into_bytes();
        let output = self.git.run(ContentRules::Bytes, &["cat-file", "--batch-check"], Some(input));
        let output = String::from_utf8_lossy(&output.unwrap_or_default()).into_owned();
        let name = |line: &str| {
            let (name, kind) = line.split_once(' ')?;
            let is_object = ["blob ", "commit ", "tag ", "tree "].iter().any(|known| kind.starts_with(known));
            is_object.then(|| name.to_owned())
        };
        output.lines().map(name).collect()
    }
}

/// The name that git gives to content.
fn object_name(content: &[u8]) -> String {
    use sha1::Digest as _;
    let head = format!("blob {}\0", content.len());
    let name = sha1::Sha1::new().chain_update(head).chain_update(content).finalize();
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Tells whether the index of a pack, unchanged since it was listed, names an object.
fn is_in_pack((path, changed, nanos): &(PathBuf, i64, i64), name: &str) -> Option<bool> {
    const NAME: usize = 20;
    let wanted: Vec<u8> = (0..name.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(name.get(at..at + 2)?, 16).ok())
        .collect::<Option<_>>()?;
    let file = File::open(path).ok()?;
    let found = file.metadata().ok()?;
    if (found.ctime(), found.ctime_nsec()) != (*changed, *nanos) || wanted.len() != NAME {
        return Some(false);
    }
    let mut head = [0; 8];
    file.read_exact_at(&mut head, 0).ok()?;
    if head != *b"\xfftOc\0\0\0\x02" {
        return Some(false);
    }
    let count = |at: u64| -> Option<u64> {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, 8 + 4 * at).ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    let first = u64::from(*wanted.first()?);
    let mut low = if first == 0 { 0 } else { count(first - 1)? };
    let mut high = count(first)?;
    while low < high {
        let middle = low + (high - low) / 2;
        let mut bytes = [0; NAME];
        file.read_exact_at(&mut bytes, 8 + 4 * 256 + middle * NAME as u64).ok()?;
        match bytes.as_slice().cmp(&wanted) {
            std::cmp::Ordering::Equal => return Some(true),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Some(false)
}
