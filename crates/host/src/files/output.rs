//! Files that a user asked for: a patch, a trajectory, a recording.
//!
//! Such a file often lies in the workspace, whose links are not the user's. So the content is written next to it
//! under a private name and then renamed, which replaces a link of that name. A link that leads out of the workspace
//! is not followed.

use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use lathe_workspace::open_exact;

/// Writes an output file, whole or not at all, readable by its owner only.
pub(crate) fn write_output(path: &Path, workspace: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let folder = output_folder(path, workspace)?;
    // A pipe or a device that the user names is written to, not replaced.
    let is_special = |found: std::fs::Metadata| !found.is_file() && !found.is_dir();
    if !folder.starts_with(workspace) && folder.join(name).metadata().is_ok_and(is_special) {
        return std::fs::write(folder.join(name), bytes);
    }
    std::fs::create_dir_all(&folder)?;
    // The folder is held open, so that the file is written to this one even if another is put in its place meanwhile.
    let held = open_exact(&folder)?;
    let by_handle = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let folder = if by_handle.is_dir() { by_handle } else { folder };
    if folder.join(name).is_dir() && !folder.join(name).is_symlink() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let private = std::fs::Permissions::from_mode(0o600);
    let mut file = tempfile::Builder::new().prefix(".lathe-").permissions(private).tempfile_in(&folder)?;
    file.write_all(bytes)?;
    file.persist(folder.join(name)).map(drop).map_err(|error| error.error)
}

/// The real path of a new output file.
pub(crate) fn output_path(path: &Path, workspace: &Path) -> io::Result<PathBuf> {
    Ok(output_folder(path, workspace)?.join(path.file_name().unwrap_or_default()))
}

/// The real folder of an output file. A link that leads from the workspace to a folder outside of it is refused: a
/// user who wants that folder names it.
fn output_folder(path: &Path, workspace: &Path) -> io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    let folder = whole.parent().unwrap_or(Path::new("/"));
    let (mut real, mut is_missing) = (PathBuf::from("/"), false);
    for part in folder.components() {
        let was_inside = real.starts_with(workspace);
        match part {
            Component::ParentDir => {
                real.pop();
            }
            Component::Normal(name) if is_missing => real.push(name),
            Component::Normal(name) => match real.join(name).canonicalize() {
                Ok(found) if was_inside && !found.starts_with(workspace) => {
                    let words = format!(
                        "{} is a link that leads out of the workspace, to {}; name that folder itself if you mean it",
                        real.join(name).display(),
                        found.display()
                    );
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, words));
                }
                Ok(found) => real = found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A dangling link would be followed when the folder is made.
                    if real.join(name).is_symlink() {
                        return Err(error);
                    }
                    is_missing = true;
                    real.push(name);
                }
                Err(error) => return Err(error),
            },
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_output_file_never_follows_a_link_of_the_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (workspace, outside) = (base.join("ws"), base.join("outside"));
        for folder in [&workspace.join("sub"), &outside] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(outside.join("file"), "theirs").unwrap();
        symlink(outside.join("file"), workspace.join("out.patch")).unwrap();
        symlink(outside.join("none"), workspace.join("dangling")).unwrap();
        symlink(&outside, workspace.join("folder")).unwrap();
        symlink("sub", workspace.join("inner")).unwrap();
        symlink(&workspace, base.join("alias")).unwrap();
        for (path, written) in [
            (workspace.join("out.patch"), Some(workspace.join("out.patch"))),
            (workspace.join("dangling"), Some(workspace.join("dangling"))),
            (workspace.join("inner/x"), Some(workspace.join("sub/x"))),
            (workspace.join("new/deep/x"), Some(workspace.join("new/deep/x"))),
            (workspace.join("../outside/named"), Some(outside.join("named"))),
            (outside.join("direct"), Some(outside.join("direct"))),
            (base.join("alias/y"), Some(workspace.join("y"))),
            (workspace.join("folder/x"), None),
            (workspace.join("folder/new/x"), None),
            (workspace.join("dangling2/x"), Some(workspace.join("dangling2/x"))),
            (base.join("alias/folder/x"), None),
            (workspace.join("sub"), None),
        ] {
            let done = write_output(&path, &workspace, b"ours");
            assert_eq!(done.is_ok(), written.is_some(), "{}: {done:?}", path.display());
            if let Some(written) = written {
                let found = std::fs::symlink_metadata(&written).unwrap();
                assert!(found.is_file(), "{}", path.display());
                assert_eq!(found.permissions().mode() & 0o777, 0o600);
                assert_eq!(std::fs::read(&written).unwrap(), b"ours");
            }
        }
        assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "theirs");
        assert!(
            !outside.join("none").exists() && !outside.join("x").exists() && !outside.join("new").exists()
        );
    }
}
