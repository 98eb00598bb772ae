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

/// Interval at which remaining processes are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Interval at which docent checks whether it has the terminal that a command needs.
const TERMINAL_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Command that runs.
///
/// # On drop
/// The command's group is killed.
#[derive(Debug)]
pub(super) struct Running {
    group: Arc<Group>,
    /// Fires when a child of this process has ended or was stopped.
    changes: unix::Signal,
    keeper: Keeper,
    /// True while the command is stopped because it needs the terminal, which docent does not have.
    wants_terminal: bool,
}

/// End of a command that was collected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Collected {
    pub(super) status: ExitStatus,
    /// True if the keeper has killed the command because docent was stalled for too long.
    pub(super) is_overdue: bool,
    /// Signal that was typed at the command's terminal and ended it.
    pub(super) typed: Option<Signal>,
}

impl Running {
    /// Starts a command, which can see by `lost` that the lease has ended. The keeper kills the command at
    /// `kill_by`, unless it gets another time first.
    ///
    /// # Errors
    /// `NotRunnable` if no process can be created.
    pub(super) fn start(
        command: &ChildCommand,
        lost: Option<&LostPipe>,
        kill_by: Option<Timestamp>,
    ) -> Result<Self, Failure> {
        let cannot_listen =
            |error| Failure::other(format!("cannot listen for the end of a command: {error}"));
        // Listen before the command starts, so that its end is not missed.
        let changes = unix::signal(SignalKind::child()).map_err(cannot_listen)?;
        // The keeper starts before the command as well, because docent may be stalled at any moment.
        let keeper = Keeper::start(kill_by).map_err(|error| {
            Failure::not_runnable(format!(
                "cannot start the process that supervises {:?}: {error}",
                command.name()
            ))
        })?;
        let ties = Ties { lost: lost.map(LostPipe::number), keeper: Some(keeper.number()), kill_by };
        let group = Arc::new(command.spawn(ties)?);
        // The command has sent its group to the keeper already, if it could.
        keeper.keep(group.id());
        Ok(Self { group, changes, keeper, wants_terminal: false })
    }

    /// Returns the group of the command.
    pub(super) fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// Returns the pipe to the keeper of the group.
    pub(super) fn keeper_line(&self) -> KeeperLine {
        self.keeper.line()
    }

    /// Waits until the command has ended, without collecting its end, so that the number of its group stays
    /// valid. A keeper that ends meanwhile is replaced; if that fails, the command is killed.
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
                () = sleep(TERMINAL_POLL_INTERVAL), if self.wants_terminal => {
                    self.wants_terminal = !job_control::give_terminal(&self.group);
                }
            }
        }
    }

    /// Ends processes that the command has left in its group, and waits until they have ended: SIGTERM first,
    /// then SIGKILL after `time` or when a signal asks for the end. Returns that signal. The end of the
    /// command must not be collected yet.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn end_rest(&self, time: Duration, signals: &mut Signals) -> Option<Signal> {
        let has_rest = || has_members_besides_leader(self.group.id());
        if !has_rest() {
            // A process that was created and ended during the check may have created another one.
            self.group.signal(Signal::KILL);
            return None;
        }
        self.group.pass_on(Signal::TERM);
        let ended = async || {
            while has_rest() {
                sleep(POLL_INTERVAL).await;
            }
        };
        let signal = tokio::select! {
            () = ended() => None,
            () = sleep(time) => None,
            signal = signals.next_end_request(&self.group) => Some(signal),
        };
        self.group.signal(Signal::KILL);
        let _ = timeout(KILLED, ended()).await;
        signal
    }

    /// Collects the end of the command.
    pub(super) fn collect(mut self) -> Result<Collected, Failure> {
        let was_in_front = interrupt::is_in_front(&self.group);
        job_control::take_terminal_back(&self.group);
        // Dismiss the keeper before the number of the group can belong to another group.
        let is_overdue = self.keeper.dismiss();
        let uncollected = |error| Failure::other(format!("cannot wait for the command: {error}"));
        let status = self.group.collect().map_err(uncollected)?;
        Ok(Collected { status, is_overdue, typed: interrupt::note(was_in_front, status) })
    }

    /// Waits for the end of a command that was killed, but only as long as a killable process takes. Returns
    /// true if the command has ended.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn ended_when_killed(&mut self) -> bool {
        timeout(KILLED, self.ended()).await.is_ok()
    }

    /// Abandons a command that was killed but does not end.
    pub(super) fn abandon(mut self) {
        job_control::take_terminal_back(&self.group);
        // Dismiss the keeper before the number of the group can belong to another group.
        self.keeper.dismiss();
        self.group.abandon();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
        // Dismiss the keeper before the end of the command is collected, because its number may then belong
        // to another group.
        self.keeper.dismiss();
    }
}
