use crate::error::{Error, ErrorKind};
use std::io;
use std::sync::{Arc, mpsc};
use std::thread::Builder;
use tokio::runtime::{self, Handle};
use tokio_util::task::TaskTracker;

/// A thread with a dedicated runtime for tasks of one client.
pub(super) struct Thread {
    handle: Handle,
    tasks: mpsc::Sender<TaskTracker>,
}

impl Thread {
    /// Starts the thread. The runtime is created on the thread, because a runtime must not be dropped inside
    /// async code.
    pub(super) fn start(name: &str) -> Result<Self, Error> {
        let (report, started) = mpsc::channel();
        let (tasks, given) = mpsc::channel();
        let run = move || match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                let _ = report.send(Ok(runtime.handle().clone()));
                // No tasks arrive if the client could not be built.
                if let Ok(tasks) = given.recv() {
                    let tasks: TaskTracker = tasks;
                    runtime.block_on(tasks.wait());
                }
            }
            Err(error) => {
                let _ = report.send(Err(error));
            }
        };
        Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
        let ended = |_| Err(io::Error::other("the thread ended"));
        let handle = started.recv().unwrap_or_else(ended).map_err(failed)?;
        Ok(Self { handle, tasks })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Runs until the last of `tasks` has ended, including tasks that run elsewhere.
    pub(super) fn run(self, tasks: TaskTracker) {
        // The thread waits for this message.
        let _ = self.tasks.send(tasks);
    }
}

fn failed(error: io::Error) -> Error {
    Error::new(ErrorKind::Overloaded, "connect")
        .because("cannot start a thread for the session")
        .caused_by(Arc::new(error))
}
