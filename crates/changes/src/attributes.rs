//! Owner and extended attributes of a path: the metadata of a file besides its content and its mode.
//!
//! Only attributes that programs and people set are kept: `user.*`, access control lists, capabilities and
//! `trusted.*`. Labels that the system gives to every file (SELinux, IMA, overlay mounts) belong to the file's
//! location and are left to the system.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use lathe_blobs::Blobs;
use lathe_protocol::Digest;
use nix::errno::Errno;

use crate::ChangesError;
use crate::beneath::lstat_at;
use crate::frame::{self, Cursor};
use crate::stat::{PathKind, Stat};

const HEAD: &[u8] = b"lathe attributes 1\n";

const CAPABILITY: &[u8] = b"security.capability";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Attributes {
    pub uid: u32,
    pub gid: u32,
    /// Values by name.
    pub extended: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Attributes {
    /// The attributes of a name in an open folder. None if they may not be read.
    pub fn read(folder: BorrowedFd<'_>, name: &[u8], stat: &Stat) -> Option<Arc<Self>> {
        let extended = system::read(folder, name).ok()?;
        Some(Self { uid: stat.uid, gid: stat.gid, extended }.shared())
    }

    /// Most files have the same attributes, so these are held once.
    pub fn shared(self) -> Arc<Self> {
        let plain = plain();
        if self == **plain { Arc::clone(plain) } else { Arc::new(self) }
    }

    /// Tells whether a file that this process makes has the same attributes: then nothing has to be recorded.
    pub fn is_plain(&self) -> bool {
        *self == **plain()
    }

    /// Tells whether a folder passes an access control list on to new files and folders in it.
    pub fn passes_acl_on(&self) -> bool {
        self.extended.contains_key(b"system.posix_acl_default".as_slice())
    }

    /// Tells whether this process may give a file this owner, this group and these capabilities.
    pub fn can_be_given(&self) -> bool {
        let (user, group) = (nix::unistd::geteuid(), nix::unistd::Gid::from_raw(self.gid));
        let own_group = || {
            group == nix::unistd::getegid()
                || nix::unistd::getgroups().is_ok_and(|groups| groups.contains(&group))
        };
        let capable = self.extended.contains_key(CAPABILITY);
        user.is_root() || user.as_raw() == self.uid && own_group() && !capable
    }

    /// Tells whether a file with the attributes `other` needs another owner, group or capabilities to have these.
    pub fn needs_more_than(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.uid, one.gid, one.extended.get(CAPABILITY).cloned());
        of(self) != of(other)
    }

    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = HEAD.to_vec();
        self.encode(&mut out);
        out
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(bytes.strip_prefix(HEAD)?);
        let read = Self::decode(&mut cursor)?;
        cursor.0.is_empty().then_some(read)
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.uid.to_le_bytes());
        out.extend_from_slice(&self.gid.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.extended.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (name, value) in &self.extended {
            frame::push_bytes(out, name);
            frame::push_bytes(out, value);
        }
    }

    pub fn decode(cursor: &mut Cursor<'_>) -> Option<Self> {
        let [uid, gid, count] = [cursor.take()?, cursor.take()?, cursor.take()?].map(u32::from_le_bytes);
        let mut extended = BTreeMap::new();
        for _ in 0..count {
            extended.insert(cursor.bytes()?.to_vec(), cursor.bytes()?.to_vec());
        }
        Some(Self { uid, gid, extended })
    }

    /// Gives a file, link or folder these attributes and this mode. The order matters: a new owner clears set-user-id
    /// bits and capabilities, `user.*` needs a writable file, and a mode changes an access control list. If the owner
    /// cannot be given, the rest is done all the same.
    pub fn put(&self, folder: BorrowedFd<'_>, name: &[u8], mode: Option<u32>) -> io::Result<()> {
        let owned = system::own(folder, name, self.uid, self.gid);
        // A set-user-id bit of another user's file must not become ours.
        let mode = mode.map(|mode| if owned.is_ok() { mode } else { mode & !0o6000 });
        let is_user = |name: &&Vec<u8>| name.starts_with(b"user.");
        let there = system::read(folder, name)?;
        let changed = |name: &&Vec<u8>| self.extended.get(*name) != there.get(*name);
        let all: std::collections::BTreeSet<&Vec<u8>> = self.extended.keys().chain(there.keys()).collect();
        let users: Vec<&Vec<u8>> = all.iter().copied().filter(is_user).filter(changed).collect();
        if let Some(mode) = mode {
            if !users.is_empty() && mode & 0o200 == 0 {
                super::restore::chmod(folder, name, mode | 0o600)?;
            }
            users.iter().try_for_each(|of| system::set(folder, name, of, self.extended.get(*of)))?;
            super::restore::chmod(folder, name, mode)?;
        }
        // Read again: owner and mode may have changed them.
        let there = system::read(folder, name)?;
        let others = all.into_iter().filter(|of| self.extended.get(*of) != there.get(*of));
        let set = |of: &Vec<u8>| system::set(folder, name, of, self.extended.get(of));
        others.map(set).fold(owned, Result::and)
    }
}

/// The metadata of a file besides content and mode.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtraMetadata {
    /// Owner and extended attributes, in the store. None if they are those of an ordinary file of the user.
    pub attributes: Option<Digest>,
    /// The number of hard links of the file.
    pub names: u32,
}

/// Stores the metadata of a file besides content and mode. None if there is no file.
pub fn keep_extra_metadata(path: &Path, blobs: &Blobs) -> Result<Option<ExtraMetadata>, ChangesError> {
    let failed = |error| ChangesError::io("inspect", path, error);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let folder = match File::open(parent) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let stat = match lstat_at(folder.as_fd(), name.as_bytes()) {
        Ok(stat) if stat.kind() == PathKind::File => stat,
        Ok(_) | Err(Errno::ENOENT) => return Ok(None),
        Err(error) => return Err(failed(error.into())),
    };
    let attributes = Attributes::read(folder.as_fd(), name.as_bytes(), &stat);
    let attributes = attributes.filter(|attributes| !attributes.is_plain());
    let attributes = attributes.map(|attributes| blobs.put(&attributes.to_bytes())).transpose()?;
    Ok(Some(ExtraMetadata { attributes, names: stat.names }))
}

/// The attributes of a file that this process makes in a usual folder.
fn plain() -> &'static Arc<Attributes> {
    static PLAIN: OnceLock<Arc<Attributes>> = OnceLock::new();
    PLAIN.get_or_init(|| {
        let (uid, gid) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
        Arc::new(Attributes { uid, gid, extended: BTreeMap::new() })
    })
}

/// Tells whether an attribute is one that is kept.
#[cfg(target_os = "linux")]
fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.")
        || matches!(name, b"system.posix_acl_access" | b"system.posix_acl_default" | b"security.capability")
        || name.starts_with(b"trusted.") && !name.starts_with(b"trusted.overlay.")
}

#[cfg(target_os = "linux")]
mod system {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::io;
    use std::os::fd::{AsRawFd as _, BorrowedFd};
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    use nix::errno::Errno;
    use nix::fcntl::AtFlags;
    use nix::sys::stat::fstatat;
    use nix::unistd::{Gid, Uid, fchownat};
    use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lremovexattr, lsetxattr};

    /// A path to exactly this name: the calls for attributes take no path relative to a folder handle.
    fn path(folder: BorrowedFd<'_>, name: &[u8]) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(OsStr::from_bytes(name))
    }

    /// A file system without such attributes has none.
    fn is_none(error: rustix::io::Errno) -> bool {
        matches!(error, rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS)
    }

    pub(super) fn read(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        let path = path(folder, name);
        let names = match grown(|into| llistxattr(&path, into)) {
            Ok(names) => names,
            Err(error) if is_none(error) => return Ok(BTreeMap::new()),
            Err(error) => return Err(error.into()),
        };
        let mut found = BTreeMap::new();
        for of in names.split(|byte| *byte == 0).filter(|of| super::is_kept(of)) {
            match grown(|into| lgetxattr(&path, OsStr::from_bytes(of), into)) {
                Ok(value) => drop(found.insert(of.to_vec(), value)),
                // Removed since it was listed.
                Err(rustix::io::Errno::NODATA) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Calls again with more room until all of it fits.
    fn grown(call: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> rustix::io::Result<Vec<u8>> {
        let mut small = [0; 256];
        match call(&mut small) {
            Ok(len) => return Ok(small.get(..len).unwrap_or_default().to_vec()),
            Err(rustix::io::Errno::RANGE) => {}
            Err(error) => return Err(error),
        }
        // The largest size that Linux allows for one value and for one list.
        let mut large = vec![0; 1 << 16];
        let len = call(&mut large)?;
        large.truncate(len);
        Ok(large)
    }

    pub(super) fn set(
        folder: BorrowedFd<'_>,
        name: &[u8],
        of: &[u8],
        value: Option<&Vec<u8>>,
    ) -> io::Result<()> {
        let (path, of) = (path(folder, name), OsStr::from_bytes(of));
        match value {
            Some(value) => Ok(lsetxattr(&path, of, value, XattrFlags::empty())?),
            None => match lremovexattr(&path, of) {
                Err(rustix::io::Errno::NODATA) => Ok(()),
                done => Ok(done?),
            },
        }
    }

    pub(super) fn own(folder: BorrowedFd<'_>, name: &[u8], uid: u32, gid: u32) -> io::Result<()> {
        let name = OsStr::from_bytes(name);
        let now = fstatat(folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        if (now.st_uid, now.st_gid) == (uid, gid) {
            return Ok(());
        }
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        match fchownat(folder, name, uid, gid, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Err(Errno::EPERM) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "its content is back, but only root can give it back to the user or group that it belonged to",
            )),
            done => Ok(done?),
        }
    }
}

/// Other systems have other calls for such attributes; there only content, mode and owner are kept.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::os::unix::ffi::OsStrExt as _;

    use nix::fcntl::AtFlags;
    use nix::unistd::{Gid, Uid, fchownat};

    pub(super) fn read(_: BorrowedFd<'_>, _: &[u8]) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
        Ok(BTreeMap::new())
    }

    pub(super) fn set(_: BorrowedFd<'_>, _: &[u8], _: &[u8], _: Option<&Vec<u8>>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn own(folder: BorrowedFd<'_>, name: &[u8], uid: u32, gid: u32) -> io::Result<()> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        Ok(fchownat(folder, OsStr::from_bytes(name), uid, gid, AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }
}
