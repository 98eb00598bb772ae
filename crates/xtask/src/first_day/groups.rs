//! Process groups of commands.

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

/// Process groups with processes that outlive their command, such as a server in the background.
///
/// # On drop
/// The processes are ended.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Pid>,
}

impl Groups {
    /// Notes the group of a command, if processes of the group are still running.
    pub(super) fn keep(&mut self, leader: u32) {
        let group = Pid::from_raw(leader.cast_signed());
        if runs(group) {
            self.groups.push(group);
        }
    }

    pub(super) fn signal(&self, leader: u32, signal: Signal) {
        // A group that has ended needs no signal.
        let _ = killpg(Pid::from_raw(leader.cast_signed()), signal);
    }

    /// Ends all processes: with SIGTERM, after a while with SIGKILL.
    pub(super) fn end(&mut self) {
        for group in self.groups.drain(..) {
            let _ = killpg(group, Signal::SIGTERM);
            let started = Instant::now();
            while runs(group) && started.elapsed() < PATIENCE {
                sleep(POLL);
            }
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.end();
    }
}

fn runs(group: Pid) -> bool {
    killpg(group, None) != Err(Errno::ESRCH)
}
