//! Termination by terminal signals. A shell ends its script on Ctrl-C only if the shell itself got the signal
//! and the program that it waited for died of it. Therefore `docent` dies of the signal too, instead of
//! exiting with a code.

use super::group::Group;
use super::{job_control, trampoline};
use rustix::process::{Signal, getpid, kill_process, kill_process_group};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

/// First argument that makes `docent` end itself by a signal.
const MODE: &str = "__end-by-signal";

/// Second argument that sends the signal to the whole process group.
const ALL: &str = "all";

/// Signals that are typed, such as those of Ctrl-C and Ctrl-\.
const TYPED: [Signal; 2] = [Signal::INT, Signal::QUIT];

/// True once such a signal ended a command whose group was in the foreground. The other processes of docent's
/// own group did not receive the signal.
static GROUP_MISSED_SIGNAL: AtomicBool = AtomicBool::new(false);

/// Returns the typed signal that ended a command in the foreground, and records it.
pub(super) fn note(was_in_front: bool, status: ExitStatus) -> Option<Signal> {
    let by = TYPED.into_iter().find(|signal| was_in_front && status.signal() == Some(signal.as_raw()));
    if by.is_some() {
        GROUP_MISSED_SIGNAL.store(true, Ordering::Relaxed);
    }
    by
}

/// Returns true if the group of a command is in the foreground.
pub(super) fn is_in_front(group: &Group) -> bool {
    job_control::foreground() == Some(group.id())
}

/// Ends this process by this signal if the signal was typed at its terminal. Returns otherwise.
pub(crate) fn end_as_typed(signal: i32) {
    let is_typed = TYPED.iter().any(|typed| typed.as_raw() == signal);
    let own = job_control::own_group();
    if !is_typed || own.is_none() || job_control::terminal_of() != own {
        return;
    }
    let target = if GROUP_MISSED_SIGNAL.load(Ordering::Relaxed) { ALL } else { "self" };
    // A new program image drops the signal handlers of this process.
    let mut command = Command::new(trampoline::program());
    let _ = command.arg0("docent").args([MODE, target, &signal.to_string()]).exec();
}

/// Ends by a signal if the arguments say so. Returns `None` for the arguments of a user.
pub(crate) fn end_if_invoked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != MODE {
        return None;
    }
    let target = arguments.next()?;
    let signal = Signal::from_named_raw(arguments.next()?.to_str()?.parse().ok()?)?;
    let _ = match job_control::own_group() {
        Some(group) if target == ALL => kill_process_group(group, signal),
        _ => kill_process(getpid(), signal),
    };
    // The signal is ignored, so the process is still alive.
    Some(ExitCode::from(u8::try_from(128 + signal.as_raw()).unwrap_or(1)))
}
