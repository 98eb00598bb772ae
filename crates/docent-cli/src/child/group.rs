use super::abandoned;
use super::members::{Members, Rest};
use super::signals::is_end;
use nix::unistd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use std::fmt;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for killed processes to end. The system may hold on to one indefinitely.
pub(super) const KILLED: Duration = Duration::from_secs(1);

/// Interval at which the end of a killed process is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Process group of a command, which is the group's leader, and the [`Members`] outside of the group.
///
/// Once the end of a process is collected, its number may belong to another process. Therefore no signal is
/// sent after that.
pub(super) struct Group {
    id: Pid,
    leader: Mutex<Leader>,
    members: Members,
    /// Decides whether the group may continue after a stop. If this is not set, it may.
    may_resume: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// `None` after the leader's end was collected or the leader was abandoned.
type Leader = Option<Child>;

/// State of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Running.
    Runs,
    /// Stopped by a signal, such as that of Ctrl-Z.
    Stopped,
    /// Ended, but not collected yet.
    Ended,
}

impl Group {
    /// Creates the group of a process that was started as its leader.
    pub(super) fn new(child: Child, members: impl FnOnce(Pid) -> Members) -> Self {
        let id = Pid::from_child(&child);
        Self { id, leader: Mutex::new(Some(child)), members: members(id), may_resume: OnceLock::new() }
    }

    /// Makes the group continue after a stop only if `may_resume` returns true at that time.
    pub(super) fn bind(&self, may_resume: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.may_resume.set(Box::new(may_resume));
    }

    /// Continues the group after a stop, or kills it if it must not continue.
    pub(super) fn resume(&self) {
        match self.may_resume() {
            true => self.signal(Signal::CONT),
            false => self.kill(),
        }
    }

    fn may_resume(&self) -> bool {
        self.may_resume.get().is_none_or(|may_resume| may_resume())
    }

    fn leader(&self) -> MutexGuard<'_, Leader> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the group.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Sends a signal to all processes of the group, and to a leader that has left the group.
    pub(super) fn signal(&self, signal: Signal) {
        let leader = self.leader();
        if leader.is_none() {
            return;
        }
        // All processes of the group may have ended.
        let _ = kill_process_group(self.id, signal);
        let number = unistd::Pid::from_raw(self.id.as_raw_nonzero().get());
        if unistd::getpgid(Some(number)).is_ok_and(|group| group != number) {
            let _ = kill_process(self.id, signal);
        }
    }

    /// Passes a signal on to the group. Stopped processes must also receive a signal that asks for the end,
    /// so they are continued, if they may.
    pub(super) fn pass_on(&self, signal: Signal) {
        self.signal(signal);
        if is_end(signal) && self.may_resume() {
            self.signal(Signal::CONT);
        }
    }

    /// Asks all members to stop.
    pub(super) fn stop(&self) {
        self.pass_on(Signal::TERM);
        if self.leader().is_some() {
            self.members.signal_outsiders(Signal::TERM);
            if self.may_resume() {
                self.members.signal_outsiders(Signal::CONT);
            }
        }
    }

    /// Kills all members.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
        if self.leader().is_some() {
            self.members.kill_outsiders();
        }
    }

    /// Returns the members besides the leader that have not ended.
    ///
    /// # Errors
    /// The error if they are unknown.
    pub(super) fn rest(&self) -> io::Result<Rest> {
        self.members.list()
    }

    /// Returns the state of the leader without collecting its end.
    pub(super) fn state(&self) -> State {
        let options =
            WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        loop {
            match waitid(WaitId::Pid(self.id), options) {
                Ok(None) => return State::Runs,
                Ok(Some(status)) if status.stopped() => return State::Stopped,
                Ok(Some(_)) | Err(Errno::CHILD) => return State::Ended,
                Err(_) => {}
            }
        }
    }

    /// Consumes a stop, so that [`state`](Self::state) reports the next one. Returns the signal that caused
    /// it.
    pub(super) fn note_stop(&self) -> Option<Signal> {
        let stop = waitid(WaitId::Pid(self.id), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        Signal::from_named_raw(stop.ok()??.stopping_signal()?)
    }

    /// Waits for the end of the leader and collects it. Works only once.
    pub(super) fn collect(&self) -> io::Result<ExitStatus> {
        let mut leader = self.leader();
        leader.take().map_or_else(|| Err(Errno::CHILD.into()), |mut child| child.wait())
    }

    /// Abandons a group that was killed but does not end. A later call of [`abandoned::collect`] collects its
    /// leader.
    pub(super) fn abandon(&self) {
        self.leader().take().into_iter().for_each(abandoned::add);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Group {
    /// Kills a group whose end was not awaited, and waits briefly for its leader to end.
    fn drop(&mut self) {
        if self.leader().is_none() {
            return;
        }
        self.kill();
        let start = Instant::now();
        while self.state() != State::Ended && start.elapsed() < KILLED {
            thread::sleep(POLL_INTERVAL);
        }
        self.abandon();
        abandoned::collect();
    }
}
