//! A thread that lives as long as the process, and starts children that must end with it.
//!
//! Linux ends such a child when the *thread* that started it ends, and the threads of a runtime come and go.

use std::io;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

type Task = Box<dyn FnOnce() + Send>;

static THREAD: OnceLock<Option<Sender<Task>>> = OnceLock::new();

fn thread() -> Option<&'static Sender<Task>> {
    let start = || {
        let (sender, tasks) = channel::<Task>();
        let run = move || tasks.into_iter().for_each(|task| task());
        std::thread::Builder::new().name("jail".to_owned()).spawn(run).ok().map(|_| sender)
    };
    THREAD.get_or_init(start).as_ref()
}

/// Starts the command on the lasting thread. The runtime of the caller waits for the child.
pub(super) async fn spawn(mut command: Command) -> (Command, io::Result<Child>) {
    let (reply, started) = oneshot::channel();
    let runtime = Handle::current();
    let task: Task = Box::new(move || {
        let _runtime = runtime.enter();
        let child = command.spawn();
        // A caller that has gone drops the child, which ends it.
        let _ = reply.send((command, child));
    });
    let sent = thread().is_some_and(|thread| thread.send(task).is_ok());
    let gone = || (Command::new(""), Err(io::Error::other("the thread that starts jails is gone")));
    if !sent {
        return gone();
    }
    started.await.unwrap_or_else(|_| gone())
}
