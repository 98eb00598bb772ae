//! Process that briefly outlives a killed `docent` to kill the group of its command. The death signal of
//! Linux reaches only the command, not the processes that the command has started. This process also watches
//! the deadline, because a stalled `docent` cannot.

use super::alarm::readable_until;
use super::keeper_message::KeeperMessage;
use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::stdio::stdin;
use std::fs::File;
use std::process::ExitCode;

/// First argument that makes `docent` a keeper.
pub(super) const MODE: &str = "__keep-group";

/// Exit code of a keeper that killed the group because its time had come.
pub(super) const OVERDUE: u8 = 76;

/// Keeps a group if the arguments say so, until `docent` has ended or the time has come. Returns `None` for
/// the arguments of a user.
pub(crate) fn keep_if_invoked() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == MODE).then(keep)
}

fn keep() -> ExitCode {
    // A signal to all processes of a service also ends `docent`, whose command may take a while to end. The
    // keeper must survive until then.
    let _ = SigSet::all().thread_block();
    let Ok(input) = stdin().try_clone_to_owned().map(File::from) else { return ExitCode::FAILURE };
    let (mut group, mut kill_by) = (None, None);
    loop {
        // Words that were written before the time came still count.
        if !readable_until(&input, group.and(kill_by)) {
            kill(group);
            // The leader may have left the group. Its number stays valid until `docent` collects its end,
            // which happens after the keeper has ended.
            if let Some(leader) = group {
                let _ = kill_process(leader, Signal::KILL);
            }
            return ExitCode::from(OVERDUE);
        }
        match KeeperMessage::read_from(&input) {
            Some(KeeperMessage::Group(id)) => group = Some(id),
            Some(KeeperMessage::KillBy(at)) => kill_by = Some(at),
            None => {
                kill(group);
                return ExitCode::SUCCESS;
            }
        }
    }
}

fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        // All processes may have ended together with their leader.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
