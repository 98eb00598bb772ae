use super::left;
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

/// Longest wait for processes that were killed to end. The system may hold on to one for as long as it likes.
pub(super) const KILLED: Duration = Duration::from_secs(1);

/// Time between two looks for the end of one that was killed.
const LOOK: Duration = Duration::from_millis(2);

/// Process group of a command, of which the command is the leader. Signals reach the whole group.
///
/// The number of a process belongs to another one once its end was collected. So nothing is sent after that.
pub(super) struct Group {
    id: Pid,
    leader: Mutex<Leader>,
    /// Whether it may go on after a stop; it may where this is not set.
    may_go_on: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// `None` once its end was collected, or is not waited for any more.
type Leader = Option<Child>;

/// State of the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It runs.
    Runs,
    /// It stands still by a signal, such as that of Ctrl-Z.
    Stopped,
    /// It has ended, which was not collected yet.
    Ended,
}

impl Group {
    /// The group of a process that was started as its leader.
    pub(super) fn new(child: Child) -> Self {
        let id = Pid::from_child(&child);
        Self { id, leader: Mutex::new(Some(child)), may_go_on: OnceLock::new() }
    }

    /// Lets it go on after a stop only where `may_go_on` is true then.
    pub(super) fn bind(&self, may_go_on: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.may_go_on.set(Box::new(may_go_on));
    }

    /// Lets it go on after a stop; kills it where it may not.
    pub(super) fn go_on(&self) {
        self.signal(if self.may_go_on() { Signal::CONT } else { Signal::KILL });
    }

    fn may_go_on(&self) -> bool {
        self.may_go_on.get().is_none_or(|may_go_on| may_go_on())
    }

    fn leader(&self) -> MutexGuard<'_, Leader> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the group.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Sends a signal to all processes of the group that there are, and to a leader that has left it.
    pub(super) fn signal(&self, signal: Signal) {
        let leader = self.leader();
        if leader.is_none() {
            return;
        }
        // There may be nobody left to get it.
        let _ = kill_process_group(self.id, signal);
        let number = unistd::Pid::from_raw(self.id.as_raw_nonzero().get());
        if unistd::getpgid(Some(number)).is_ok_and(|group| group != number) {
            let _ = kill_process(self.id, signal);
        }
    }

    /// Passes a signal on. Processes that stand still hear one that asks for the end as well: they go on for
    /// that, where they may.
    pub(super) fn pass_on(&self, signal: Signal) {
        self.signal(signal);
        if is_end(signal) && self.may_go_on() {
            self.signal(Signal::CONT);
        }
    }

    /// State of the leader; its end is not collected.
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

    /// Takes note of a stop, so that [`state`](Self::state) tells the next one. Returns the signal of it.
    pub(super) fn note_stop(&self) -> Option<Signal> {
        let stop = waitid(WaitId::Pid(self.id), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        Signal::from_named_raw(stop.ok()??.stopping_signal()?)
    }

    /// Waits for the end of the leader and collects it. Once only.
    pub(super) fn collect(&self) -> io::Result<ExitStatus> {
        let mut leader = self.leader();
        leader.take().map_or_else(|| Err(Errno::CHILD.into()), |mut child| child.wait())
    }

    /// Gives a group up that was killed, and does not end: whoever comes later collects its leader.
    pub(super) fn leave(&self) {
        self.leader().take().into_iter().for_each(left::leave);
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Drop for Group {
    /// Kills a group whose end nobody waited for, and waits until its leader has ended, but not for long.
    fn drop(&mut self) {
        if self.leader().is_none() {
            return;
        }
        self.signal(Signal::KILL);
        let begun = Instant::now();
        while self.state() != State::Ended && begun.elapsed() < KILLED {
            thread::sleep(LOOK);
        }
        self.leave();
        left::collect();
    }
}
