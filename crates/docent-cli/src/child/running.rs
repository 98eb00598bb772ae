use super::children;
use super::group::{Group, KILLED, State};
use super::interrupt;
use super::job_control;
use super::keeper::{Keeper, KeeperLine};
use super::lost_pipe::LostPipe;
use super::members::{Bystanders, Mark, Members};
use super::proc::Process;
use super::trampoline::Ties;
use super::{ChildCommand, CommandExit, Signals};
use crate::exit::Failure;
use docent::time::Timestamp;
use rustix::process::Signal;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{sleep, timeout};

/// Shortest interval at which remaining processes are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Shortest time between two polls, as a multiple of the duration of the first one.
const POLL_REST: u32 = 4;

/// Interval at which remaining processes are killed again.
const KILL_INTERVAL: Duration = Duration::from_millis(200);

/// Interval at which docent checks whether it has the terminal that a command needs.
const TERMINAL_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Command that runs.
///
/// # On drop
/// The command and all processes that it has started are killed.
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
    pub(super) exit: CommandExit,
    /// True if the keeper has killed the command because docent was stalled for too long.
    pub(super) is_overdue: bool,
    /// Signal that was typed at the command's terminal and ended it.
    pub(super) typed: Option<Signal>,
}

/// Processes that a command has left.
#[derive(Debug)]
pub(super) enum Left {
    /// This one and perhaps others.
    Process(Process),
    /// Unknown, because the list of processes cannot be read. There may be some.
    Unknown(io::Error),
}

/// Bond between a command and the guard that it runs under. The default is that of a command without a guard.
#[derive(Debug, Default)]
pub(super) struct Bond<'a> {
    /// Pipe that shows the command that the lease has ended.
    pub(super) lost: Option<&'a LostPipe>,
    /// Time at which the keeper kills the command, unless it gets another time first.
    pub(super) kill_by: Option<Timestamp>,
    /// Mark of all processes that the command starts. Without one, only its group belongs to the command.
    pub(super) mark: Option<Mark>,
}

impl Running {
    /// Starts a command.
    ///
    /// # Errors
    /// `NotRunnable` if no process can be created.
    pub(super) fn start(command: &ChildCommand, bond: Bond<'_>) -> Result<Self, Failure> {
        let Bond { lost, kill_by, mark } = bond;
        let mark = mark.as_ref();
        let cannot_listen =
            |error| Failure::other(format!("cannot listen for the end of a command: {error}"));
        // Listen before the command starts, so that its end is not missed.
        let changes = unix::signal(SignalKind::child()).map_err(cannot_listen)?;
        // The keeper starts before the command as well, because docent may be stalled at any moment.
        let bystanders = mark.map(|_| Bystanders::list()).transpose();
        let bystanders = bystanders.map_err(|error| {
            // Processes that are older than the command could otherwise be mistaken for its own, and killed.
            Failure::not_runnable(format!("cannot list the processes of this machine: {error}"))
        })?;
        let bystanders = bystanders.unwrap_or_default();
        let keeper = Keeper::start(kill_by, mark, &bystanders).map_err(|error| {
            Failure::not_runnable(format!(
                "cannot start the process that supervises {:?}: {error}",
                command.name()
            ))
        })?;
        let ties = Ties {
            lost: lost.map(LostPipe::number),
            keeper: Some(keeper.number()),
            kill_by,
            is_killable: kill_by.is_some(),
            cgroup: mark.and_then(Mark::folder).map(Path::to_owned),
        };
        let members = |group| Members::of(group, mark, &bystanders, keeper.process());
        let group = Arc::new(command.spawn(ties, mark, members)?);
        // The command has set its group already, if it could.
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
            children::collect_orphans();
            if self.keeper.replace_if_ended().is_err() {
                self.group.kill();
            }
            tokio::select! {
                _ = self.changes.recv() => {}
                () = sleep(TERMINAL_POLL_INTERVAL), if self.wants_terminal => {
                    self.wants_terminal = !job_control::give_terminal(&self.group);
                }
            }
        }
    }

    /// Ends processes that the command has left, and waits until they have ended: SIGTERM first, then SIGKILL
    /// after `time` or when a signal asks for the end. Returns that signal, and what is [left](Left) if not
    /// all could be killed. The end of the command must not be collected yet.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn end_rest(
        &self,
        time: Duration,
        signals: &mut Signals,
    ) -> (Option<Signal>, Option<Left>) {
        let mut asked = None;
        if self.left().is_some() {
            self.group.stop();
            asked = tokio::select! {
                () = self.rest_ended() => None,
                () = sleep(time) => None,
                signal = signals.next_end_request(&self.group) => Some(signal),
            };
        }
        // Even if no process was found: one that was created and ended during the check may have created
        // another.
        let _ = timeout(KILLED, self.rest_killed()).await;
        (asked, self.left())
    }

    /// Returns whether processes that the command has started have not ended. The end of the command must not
    /// be collected yet.
    fn left(&self) -> Option<Left> {
        loop {
            match self.group.rest() {
                Err(error) => return Some(Left::Unknown(error)),
                Ok(rest) => match rest.members.first() {
                    Some(process) => return Some(Left::Process(*process)),
                    // A process that ended during the check may have created another one before.
                    None if children::collect(&rest.ended) => {}
                    None => return None,
                },
            }
        }
    }

    /// Kills all processes that the command has started, again and again, until they have ended: they may
    /// create others meanwhile.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn rest_killed(&self) {
        loop {
            self.group.kill();
            if timeout(KILL_INTERVAL, self.rest_ended()).await.is_ok() {
                return;
            }
        }
    }

    /// Waits until all processes that the command has started have ended.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub(super) async fn rest_ended(&self) {
        loop {
            let begun = Instant::now();
            if self.left().is_none() {
                return;
            }
            // On a machine with many processes, a look takes long and delays what keeps the lease.
            sleep(POLL_INTERVAL.max(begun.elapsed() * POLL_REST)).await;
        }
    }

    /// Collects the end of the command.
    pub(super) fn collect(mut self) -> Result<Collected, Failure> {
        let was_in_front = interrupt::is_in_front(&self.group);
        job_control::take_terminal_back(&self.group);
        // Dismiss the keeper before the number of the group can belong to another group.
        let is_overdue = self.keeper.dismiss();
        let uncollected = |error| Failure::other(format!("cannot wait for the command: {error}"));
        let status = self.group.collect().map_err(uncollected)?;
        // Without `/proc`, the process that failed to become the program cannot tell.
        let was_run = self.keeper.was_run().unwrap_or(!matches!(status.code(), Some(126 | 127)));
        let exit = CommandExit::new(status, was_run);
        Ok(Collected { exit, is_overdue, typed: interrupt::note(was_in_front, status) })
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
        self.group.kill();
        // Dismiss the keeper before the end of the command is collected, because its number may then belong
        // to another group.
        self.keeper.dismiss();
    }
}
