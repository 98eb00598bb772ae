use super::group::{Group, KILLED, State};
use super::interrupt;
use super::job_control;
use super::keeper::{Keeper, KeeperLine};
use super::lost_pipe::LostPipe;
use super::members::has_members_besides_leader;
use super::trampoline::Ties;
use super::{ChildCommand, Signals};
use crate::exit::Failure;
use docent::time::Timestamp;
use rustix::process::Signal;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{sleep, timeout};

/// Time between two looks for processes that are left.
const LOOK: Duration = Duration::from_millis(20);

/// Time between two looks whether the terminal that a command needs is ours.
const TERMINAL_LOOK: Duration = Duration::from_millis(200);

/// Command that runs.
///
/// # On drop
/// Its group is killed.
#[derive(Debug)]
pub(super) struct Running {
    group: Arc<Group>,
    /// Comes when a child of this process ended or was stopped.
    changes: unix::Signal,
    keeper: Keeper,
    /// True while it is stopped because it needs the terminal, which is not ours.
    wants_terminal: bool,
}

/// End of a command that was collected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collected {
    pub(super) status: ExitStatus,
    /// True when its keeper has killed it, because we stood still for too long.
    pub(super) is_overdue: bool,
    /// The signal that was typed at its terminal and ended it.
    pub(super) typed: Option<Signal>,
}

impl Running {
    /// Starts a command, which can see by `lost` that the lease is over. At `kill_by` its keeper kills it, if
    /// that is not told another time before.
    ///
    /// # Errors
    /// `NotRunnable` when no process can be made.
    pub(super) fn start(
        command: &ChildCommand,
        lost: Option<&LostPipe>,
        kill_by: Option<Timestamp>,
    ) -> Result<Self, Failure> {
        let unheard = |error| Failure::other(format!("cannot listen for the end of a command: {error}"));
        // Before it is started, so that its end is not missed.
        let changes = unix::signal(SignalKind::child()).map_err(unheard)?;
        // Before it as well: we may stand still from any moment on.
        let keeper = Keeper::start(kill_by).map_err(|error| {
            Failure::not_runnable(format!(
                "cannot start the process that keeps {:?}: {error}",
                command.name()
            ))
        })?;
        let ties = Ties { lost: lost.map(LostPipe::number), keeper: Some(keeper.number()), kill_by };
        let group = Arc::new(command.spawn(ties)?);
        // It has told that itself, where it could.
        keeper.keep(group.id());
        Ok(Self { group, changes, keeper, wants_terminal: false })
    }

    /// Group of the command.
    pub(super) fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Line to the keeper of the group.
    pub(super) fn keeper_line(&self) -> KeeperLine {
        self.keeper.line()
    }

    /// Waits until the command has ended. Its end is not collected, so that the number of its group is still
    /// its own. A keeper that ends meanwhile is replaced; where that cannot be, the command is killed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn ended(&mut self) {
        loop {
            match self.group.state() {
                State::Ended => return,
                State::Stopped => self.wants_terminal = job_control::stop_with(&self.group),
                State::Runs => {}
            }
            if self.keeper.replace_if_ended().is_err() {
                self.group.signal(Signal::KILL);
            }
            tokio::select! {
                _ = self.changes.recv() => {}
                () = sleep(TERMINAL_LOOK), if self.wants_terminal => {
                    self.wants_terminal = !job_control::give_terminal(&self.group);
                }
            }
        }
    }

    /// Ends processes that the command has left in its group: with SIGTERM, and SIGKILL after so much time,
    /// or when a signal asks for the end, which is returned. Waits until they have ended. The end of the
    /// command was not collected yet.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn end_rest(&self, time: Duration, signals: &mut Signals) -> Option<Signal> {
        let has_rest = || has_members_besides_leader(self.group.id());
        if !has_rest() {
            // One that was made and ended while we looked may have made another one.
            self.group.signal(Signal::KILL);
            return None;
        }
        self.group.pass_on(Signal::TERM);
        let ended = async || {
            while has_rest() {
                sleep(LOOK).await;
            }
        };
        let asked = tokio::select! {
            () = ended() => None,
            () = sleep(time) => None,
            signal = signals.asked_to_end(&self.group) => Some(signal),
        };
        self.group.signal(Signal::KILL);
        let _ = timeout(KILLED, ended()).await;
        asked
    }

    /// Collects the end of the command.
    pub(super) fn collect(mut self) -> Result<Collected, Failure> {
        let was_in_front = interrupt::is_in_front(&self.group);
        job_control::take_terminal_back(&self.group);
        // Before the number of the group can be another one's.
        let is_overdue = self.keeper.dismiss();
        let uncollected = |error| Failure::other(format!("cannot wait for the command: {error}"));
        let status = self.group.collect().map_err(uncollected)?;
        Ok(Collected { status, is_overdue, typed: interrupt::note(was_in_front, status) })
    }

    /// Waits for the end of a command that was killed, and no longer than it takes a process that can be.
    /// True when it has ended.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn ended_when_killed(&mut self) -> bool {
        timeout(KILLED, self.ended()).await.is_ok()
    }

    /// Gives a command up that was killed, and does not end.
    pub(super) fn leave(mut self) {
        job_control::take_terminal_back(&self.group);
        // As above.
        self.keeper.dismiss();
        self.group.leave();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
        // Before the end of the command is collected, as above.
        self.keeper.dismiss();
    }
}
