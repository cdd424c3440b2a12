//! Files that git writes, under the rule for all requests that create names: together they must not make a folder a
//! repository.
//!
//! Git runs under the lock of all requests that create names, and those may fill a runtime with waiting. So it runs
//! on a thread of its own, with a runtime of its own for the one child process: nothing in it waits for the runtime
//! that the others fill. Files are removed before, and restored if git fails. That is one act, which is completed
//! even if its client disconnects in the middle.

use std::ffi::OsString;
use std::path::PathBuf;

use lathe_host::{FileProblem, HostError, RemovedItem};
use lathe_workspace::{WorkspaceError, lock_naming, makes_repository, queue};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::GitPlace;
use crate::slot::keeping_slot;

impl GitPlace {
    /// Lets git write these files in place of the present ones, which are kept.
    pub(super) async fn replace_files(
        &self,
        named: Vec<PathBuf>,
        specs: Vec<OsString>,
    ) -> Result<Vec<RemovedItem>, HostError> {
        let failed = |error: std::io::Error| HostError::Git(format!("git checkout: {error}"));
        let queued = queue().await;
        let (place, (sender, result)) = (self.clone(), oneshot::channel());
        let act = keeping_slot(move || {
            let runtime = Builder::new_current_thread().enable_all().build().map_err(failed);
            let done = runtime.and_then(|runtime| place.replace_files_blocking(&named, &specs, &runtime));
            drop(queued);
            let _ = sender.send(done);
        });
        std::thread::Builder::new().name("git checkout".to_owned()).spawn(act).map_err(failed)?;
        result.await.unwrap_or_else(|error| Err(HostError::Crashed(error.to_string())))
    }

    fn replace_files_blocking(
        &self,
        named: &[PathBuf],
        specs: &[OsString],
        runtime: &Runtime,
    ) -> Result<Vec<RemovedItem>, HostError> {
        let mut kept = Vec::new();
        let mut done = Ok(());
        for plain in named {
            match self.browser.remove_here(plain) {
                Ok(one) => kept.push(one),
                Err(HostError::File { problem: FileProblem::NotFound, .. }) => {}
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
        }
        if let Err(error) = done.and_then(|()| self.write_out(named, specs, runtime)) {
            for one in &kept {
                let _ = self.browser.restore_here(&one.id);
            }
            return Err(error);
        }
        Ok(kept)
    }

    /// Lets git write these files while no other request creates names: git would create a repository from them like
    /// any other program.
    fn write_out(&self, named: &[PathBuf], specs: &[OsString], runtime: &Runtime) -> Result<(), HostError> {
        let _one = lock_naming();
        self.check_layout(named)?;
        let call = self.run(&["checkout", "--quiet", "--no-recurse-submodules"], specs);
        runtime.block_on(call).map(drop)
    }

    /// Refuses files that together make a folder a repository.
    pub(super) fn check_layout(&self, named: &[PathBuf]) -> Result<(), HostError> {
        let root = self.browser.root();
        let written: Vec<PathBuf> = named.iter().map(|plain| root.join(plain)).collect();
        match makes_repository(root, &written) {
            Some(path) => {
                let plain = path.strip_prefix(root).unwrap_or(path);
                Err(WorkspaceError::Protected(plain.to_owned()).into())
            }
            None => Ok(()),
        }
    }
}
