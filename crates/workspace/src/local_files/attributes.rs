//! Extended attributes that a file keeps when its content is replaced: `user.*` and the access control list.
//! Capabilities are dropped, as with any write.

use std::fs::{File, Permissions};
use std::io;

/// Names and values.
#[derive(Debug, Default)]
pub(super) struct ExtendedAttributes(Vec<(Vec<u8>, Vec<u8>)>);

#[cfg(target_os = "linux")]
impl ExtendedAttributes {
    /// The attributes of an open file. A file system without any has none.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt as _;
        let none = |error: rustix::io::Errno| {
            matches!(error, rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS)
        };
        let mut list = [0; 256];
        let list = match rustix::fs::flistxattr(file, &mut list[..]) {
            Ok(len) => list.get(..len).unwrap_or_default().to_vec(),
            Err(rustix::io::Errno::RANGE) => {
                let mut long = vec![0; 1 << 16];
                let len = rustix::fs::flistxattr(file, &mut long[..])?;
                long.truncate(len);
                long
            }
            Err(error) if none(error) => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let is_kept = |name: &&[u8]| name.starts_with(b"user.") || *name == b"system.posix_acl_access";
        let mut found = Vec::new();
        for name in list.split(|byte| *byte == 0).filter(is_kept) {
            let mut value = vec![0; 1 << 16];
            match rustix::fs::fgetxattr(file, std::ffi::OsStr::from_bytes(name), &mut value[..]) {
                Ok(len) => {
                    value.truncate(len);
                    found.push((name.to_vec(), value));
                }
                Err(rustix::io::Errno::NODATA) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self(found))
    }

    /// Gives a file mode and attributes: `user.*` while it is writable, and the access control list after the mode,
    /// which would change it.
    pub(super) fn apply_to(&self, file: &File, mode: Permissions) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt as _;
        let set = |(name, value): &(Vec<u8>, Vec<u8>)| {
            let name = std::ffi::OsStr::from_bytes(name);
            rustix::fs::fsetxattr(file, name, value, rustix::fs::XattrFlags::empty())
        };
        let is_user = |(name, _): &&(Vec<u8>, Vec<u8>)| name.starts_with(b"user.");
        self.0.iter().filter(is_user).try_for_each(set)?;
        file.set_permissions(mode)?;
        Ok(self.0.iter().filter(|one| !is_user(one)).try_for_each(set)?)
    }
}

#[cfg(not(target_os = "linux"))]
impl ExtendedAttributes {
    pub(super) fn of(_: &File) -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(super) fn apply_to(&self, file: &File, mode: Permissions) -> io::Result<()> {
        file.set_permissions(mode)
    }
}
