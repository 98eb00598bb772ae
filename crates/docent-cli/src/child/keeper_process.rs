//! Process that outlives a killed `docent` for a moment, to kill the group of its command: the death signal
//! of Linux reaches the command alone, and not the processes that the command has started. It watches the
//! time as well, because a `docent` that stands still cannot.

use super::alarm::readable_until;
use super::keeper_word::Word;
use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::stdio::stdin;
use std::fs::File;
use std::process::ExitCode;

/// First argument, by which `docent` knows that it is a keeper.
pub(super) const WORD: &str = "__keep-group";

/// Exit code of a keeper that has killed the group because the time had come.
pub(super) const OVERDUE: u8 = 76;

/// Keeps a group if the arguments say so, until `docent` has ended or the time has come. `None` when the
/// arguments are those of a user.
pub(crate) fn keep_if_asked() -> Option<ExitCode> {
    (std::env::args_os().nth(1)? == WORD).then(keep)
}

fn keep() -> ExitCode {
    // A signal for all processes of a service ends `docent` as well, whose command may take a while to end.
    let _ = SigSet::all().thread_block();
    let Ok(input) = stdin().try_clone_to_owned().map(File::from) else { return ExitCode::FAILURE };
    let (mut group, mut kill_by) = (None, None);
    loop {
        // What was said before the time came counts.
        if !readable_until(&input, group.and(kill_by)) {
            kill(group);
            // Its leader may have left it. It has its number until `docent` collects its end, after ours.
            if let Some(leader) = group {
                let _ = kill_process(leader, Signal::KILL);
            }
            return ExitCode::from(OVERDUE);
        }
        match Word::read_from(&input) {
            Some(Word::Group(told)) => group = Some(told),
            Some(Word::KillBy(at)) => kill_by = Some(at),
            None => {
                kill(group);
                return ExitCode::SUCCESS;
            }
        }
    }
}

fn kill(group: Option<Pid>) {
    if let Some(group) = group {
        // All may have ended with their leader.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
