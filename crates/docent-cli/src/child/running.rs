use super::ChildCommand;
use super::group::{Group, State};
use super::job_control;
use super::keeper::Keeper;
use super::lost_pipe::LostPipe;
use super::members::has_members_besides_leader;
use crate::exit::Failure;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep};

/// Time between two looks for processes that are left.
const LOOK: Duration = Duration::from_millis(20);

/// Command that runs.
///
/// # On drop
/// Its group is killed.
#[derive(Debug)]
pub(super) struct Running {
    group: Arc<Group>,
    /// Comes when a child of this process ended or was stopped.
    changes: Signal,
    /// `None` where no more processes can be started: the command's own death signal has to do then.
    _keeper: Option<Keeper>,
}

impl Running {
    /// Starts a command, which can see by `lost` that the lease is over.
    ///
    /// # Errors
    /// `NotRunnable` when no process can be made.
    pub(super) fn start(command: &ChildCommand, lost: Option<&LostPipe>) -> Result<Self, Failure> {
        let unheard = |error| Failure::other(format!("cannot listen for the end of a command: {error}"));
        // Before it is started, so that its end is not missed.
        let changes = signal(SignalKind::child()).map_err(unheard)?;
        let group = Arc::new(command.spawn(lost)?);
        let keeper = Keeper::start(&group).ok();
        Ok(Self { group, changes, _keeper: keeper })
    }

    /// Group of the command.
    pub(super) fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Waits until the command has ended. Its end is not collected, so that the number of its group is still
    /// its own.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn ended(&mut self) {
        loop {
            match self.group.state() {
                State::Ended => return,
                State::Stopped => job_control::stop_with(&self.group),
                State::Runs => {}
            }
            self.changes.recv().await;
        }
    }

    /// Ends processes that the command has left in its group: with SIGTERM, and SIGKILL after so much time.
    /// The end of the command was not collected yet.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn end_rest(&self, time: Duration) {
        if has_members_besides_leader(self.group.id()) {
            self.group.signal(rustix::process::Signal::TERM);
        }
        let deadline = Instant::now() + time;
        while Instant::now() < deadline && has_members_besides_leader(self.group.id()) {
            sleep(LOOK).await;
        }
        self.group.signal(rustix::process::Signal::KILL);
    }

    /// Collects the end of the command.
    pub(super) fn collect(self) -> Result<ExitStatus, Failure> {
        job_control::take_terminal_back(&self.group);
        self.group.collect().map_err(|error| Failure::other(format!("cannot wait for the command: {error}")))
    }
}
