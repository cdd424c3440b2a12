//! The layout of the folders at the last walk, so that the next check needs no walk.
//!
//! Every entry that appears in a folder or leaves it changes the folder's own times. So while every folder, and every
//! ignore file, looks as it did, a walk would find the same names, and only the files themselves must be checked. A
//! folder that was written at the moment of the walk makes no layout, and where other machines can write, the times
//! of folders are not relied on.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::scan::{FileScan, SourceFile, Stamp};
use crate::watch::{TreeWatch, is_shared};

/// A file that was written this long before the walk cannot be written again without looking different.
const TICK: i64 = 50_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Every folder that was walked, from the root, sorted.
    pub folders: Vec<(String, Stamp)>,
    /// Every source file, from the root, sorted.
    pub files: Vec<String>,
    /// All other files that decide what is walked, whether they exist or not.
    pub rules: Vec<(String, Option<Stamp>)>,
}

pub fn stamp(path: &Path) -> Option<Stamp> {
    std::fs::symlink_metadata(path).ok().map(|metadata| Stamp::of(&metadata))
}

#[derive(Debug, PartialEq, Eq)]
enum EntryKind {
    File,
    Folder,
    Other,
}

/// The stamp and kind of a path, relative to an open folder: shorter paths are found faster.
fn stamp_at(base: &std::fs::File, path: &str) -> Option<(Stamp, EntryKind)> {
    use nix::sys::stat::SFlag;
    let path = if path.is_empty() { "." } else { path };
    let found = nix::sys::stat::fstatat(base, path, nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
    let nanos = |seconds: i64, rest: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest);
    // The widths of these differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
    let stamp = Stamp {
        size: found.st_size as u64,
        mtime: nanos(found.st_mtime as i64, found.st_mtime_nsec as i64),
        ctime: nanos(found.st_ctime as i64, found.st_ctime_nsec as i64),
        inode: found.st_ino as u64,
    };
    let kind = match SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT {
        SFlag::S_IFREG => EntryKind::File,
        SFlag::S_IFDIR => EntryKind::Folder,
        _ => EntryKind::Other,
    };
    Some((stamp, kind))
}

/// The stamp of an ignore file, which may be a link.
pub fn rule_stamp(path: &Path) -> Option<Stamp> {
    std::fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata))
}

/// Tells whether something with this stamp has been unchanged for long enough.
pub fn is_settled(stamp: &Stamp) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    now - stamp.mtime.max(stamp.ctime) > TICK
}

/// The files in which git keeps the ignore rules of a folder that is a work tree, and the files that lead to them.
pub fn exclude_files(folder: &Path) -> Vec<PathBuf> {
    let git = folder.join(".git");
    let mut all = vec![git.join("info/exclude")];
    // A linked work tree, apart from the repository's own.
    if let Some(text) = small_text(&git)
        && let Some(own) = text.trim().strip_prefix("gitdir:")
    {
        let own = folder.join(own.trim());
        let common = small_text(&own.join("commondir")).unwrap_or_default();
        all.push(own.join(common.trim()).join("info/exclude"));
        all.push(own.join("commondir"));
        all.push(git);
    }
    all
}

/// The text of a file that should be short. A pipe or a device in its place would block, so it is not read.
pub(crate) fn small_text(path: &Path) -> Option<String> {
    String::from_utf8(read_regular(path, 64 << 10).ok()?).ok()
}

/// The content of a regular file of at most `most` bytes. The kind is checked on the open file, so that a file
/// swapped for a pipe does not block.
pub(crate) fn read_regular(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = std::fs::File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let mut content = Vec::new();
    file.take(most + 1).read_to_end(&mut content)?;
    match content.len() as u64 > most {
        true => Err(std::io::ErrorKind::FileTooLarge.into()),
        false => Ok(content),
    }
}

/// Ignore files that count although they are outside of the root.
pub fn outside_rules(root: &Path) -> Vec<PathBuf> {
    let above =
        root.ancestors().skip(1).flat_map(|folder| [".gitignore", ".ignore"].map(|name| folder.join(name)));
    let excluded = root.ancestors().flat_map(exclude_files);
    above.chain(excluded).chain(ignore::gitignore::gitconfig_excludes_path()).collect()
}

impl Layout {
    /// Makes the layout of what a walk saw.
    pub fn new(
        mut folders: Vec<(String, Stamp)>,
        files: &[SourceFile],
        mut rules: Vec<(String, Option<Stamp>)>,
    ) -> Self {
        folders.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        rules.sort_by(|a, b| a.0.cmp(&b.0));
        rules.dedup_by(|a, b| a.0 == b.0);
        Self { folders, files: files.iter().map(|file| file.path.clone()).collect(), rules }
    }

    /// The files that a walk would see now. None if a folder or a rule has changed.
    pub fn rescan(
        &self,
        root: &Path,
        threads: usize,
        watch: Option<&TreeWatch>,
        stop: &AtomicBool,
    ) -> Option<FileScan> {
        let known = |path: &Path| {
            path.to_str().is_some_and(|path| self.rules.binary_search_by(|rule| (*rule.0).cmp(path)).is_ok())
        };
        let same = self.rules.iter().all(|(path, seen)| rule_stamp(Path::new(path)) == *seen)
            && outside_rules(root).iter().all(|path| known(path));
        if !same || is_shared(root) {
            return None;
        }
        let base = std::fs::File::open(root).ok()?;
        let changed = AtomicBool::new(false);
        let ends = || changed.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
        let portion = |length: usize| length.div_ceil(threads.max(1)).max(1);
        let mut files = Vec::with_capacity(self.files.len());
        std::thread::scope(|scope| {
            let mut looking = Vec::new();
            let folders = self.folders.chunks(portion(self.folders.len()));
            let names = self.files.chunks(portion(self.files.len()));
            let longest = folders.len().max(names.len());
            let (mut folders, mut names) = (folders, names);
            for _ in 0..longest {
                let (folders, names) = (folders.next().unwrap_or_default(), names.next().unwrap_or_default());
                let (changed, ends, base) = (&changed, &ends, &base);
                looking.push(scope.spawn(move || {
                    for (path, seen) in folders {
                        // The watch is added before the folder is checked, so that nothing that happens later is
                        // missed.
                        if let Some(watch) = watch {
                            watch.add(&root.join(path), path);
                        }
                        if ends() || stamp_at(base, path) != Some((*seen, EntryKind::Folder)) {
                            changed.store(true, Ordering::Relaxed);
                            return Vec::new();
                        }
                    }
                    let mut found = Vec::with_capacity(names.len());
                    for path in names {
                        match stamp_at(base, path) {
                            Some((stamp, EntryKind::File)) if !ends() => {
                                found.push(SourceFile { path: path.clone(), stamp })
                            }
                            _ => {
                                changed.store(true, Ordering::Relaxed);
                                return Vec::new();
                            }
                        }
                    }
                    found
                }));
            }
            for thread in looking {
                files.append(&mut thread.join().unwrap_or_default());
            }
        });
        let whole = !ends() && files.len() == self.files.len();
        whole.then_some(FileScan { files, beyond: 0, layout: None })
    }

    pub fn pack(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let number = |out: &mut Vec<u8>, value: usize| out.extend_from_slice(&(value as u32).to_le_bytes());
        let text = |out: &mut Vec<u8>, text: &str| {
            number(out, text.len());
            out.extend_from_slice(text.as_bytes());
        };
        let stamped = |out: &mut Vec<u8>, stamp: &Stamp| {
            for value in [stamp.size, stamp.mtime.cast_unsigned(), stamp.ctime.cast_unsigned(), stamp.inode] {
                out.extend_from_slice(&value.to_le_bytes());
            }
        };
        for count in [self.folders.len(), self.files.len(), self.rules.len()] {
            number(&mut out, count);
        }
        for (path, stamp) in &self.folders {
            text(&mut out, path);
            stamped(&mut out, stamp);
        }
        self.files.iter().for_each(|path| text(&mut out, path));
        for (path, stamp) in &self.rules {
            text(&mut out, path);
            number(&mut out, usize::from(stamp.is_some()));
            stamped(&mut out, &stamp.unwrap_or_default());
        }
        out
    }

    pub fn unpack(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let counts = [number(bytes)?, number(bytes)?, number(bytes)?];
        let folders = (0..counts[0]).map(|_| Some((text(bytes)?, stamped(bytes)?))).collect::<Option<_>>()?;
        let files = (0..counts[1]).map(|_| text(bytes)).collect::<Option<_>>()?;
        let rules = (0..counts[2])
            .map(|_| {
                let (path, there) = (text(bytes)?, number(bytes)? != 0);
                let stamp = stamped(bytes)?;
                Some((path, there.then_some(stamp)))
            })
            .collect::<Option<_>>()?;
        bytes.is_empty().then_some(Self { folders, files, rules })
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn number(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?))
}

fn long(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?))
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    let length = number(bytes)? as usize;
    String::from_utf8(take(bytes, length)?.to_vec()).ok()
}

fn stamped(bytes: &mut &[u8]) -> Option<Stamp> {
    let (size, mtime, ctime, inode) = (long(bytes)?, long(bytes)?, long(bytes)?, long(bytes)?);
    Some(Stamp { size, mtime: mtime.cast_signed(), ctime: ctime.cast_signed(), inode })
}
