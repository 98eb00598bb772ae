//! Ends by signals of the terminal. A shell ends its script by Ctrl-C only if it got the signal itself, and
//! the program that it waited for ended by it: so `docent` ends by it too, and not with an exit code.

use super::group::Group;
use super::{job_control, trampoline};
use rustix::process::{Signal, getpid, kill_process, kill_process_group};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

/// First argument, by which `docent` knows that it is to end by a signal.
const WORD: &str = "__end-by-signal";

/// Second argument when all of our group are to get it.
const ALL: &str = "all";

/// Signals that are typed, as Ctrl-C and Ctrl-\ are.
const TYPED: [Signal; 2] = [Signal::INT, Signal::QUIT];

/// True once such a signal has ended a command whose group was in the foreground. Those beside us, in ours,
/// did not get it.
static HAS_MISSED_IT: AtomicBool = AtomicBool::new(false);

/// The typed signal that has ended a command in the foreground. Its end is noted.
pub(super) fn note(was_in_front: bool, status: ExitStatus) -> Option<Signal> {
    let by = TYPED.into_iter().find(|signal| was_in_front && status.signal() == Some(signal.as_raw()));
    if by.is_some() {
        HAS_MISSED_IT.store(true, Ordering::Relaxed);
    }
    by
}

/// True when the group of a command is in the foreground.
pub(super) fn is_in_front(group: &Group) -> bool {
    job_control::foreground() == Some(group.id())
}

/// Ends this process by the signal of this number, if that was typed at our terminal. Returns otherwise.
pub(crate) fn end_as_typed(signal: i32) {
    let is_typed = TYPED.iter().any(|typed| typed.as_raw() == signal);
    let own = job_control::own_group();
    if !is_typed || own.is_none() || job_control::terminal_of() != own {
        return;
    }
    let whom = if HAS_MISSED_IT.load(Ordering::Relaxed) { ALL } else { "self" };
    // Signals that a process listens for are not listened for by the program that it becomes.
    let mut command = Command::new(trampoline::program());
    let _ = command.arg0("docent").args([WORD, whom, &signal.to_string()]).exec();
}

/// Ends by a signal if the arguments say so. `None` when the arguments are those of a user.
pub(crate) fn end_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let whom = arguments.next()?;
    let signal = Signal::from_named_raw(arguments.next()?.to_str()?.parse().ok()?)?;
    let _ = match job_control::own_group() {
        Some(group) if whom == ALL => kill_process_group(group, signal),
        _ => kill_process(getpid(), signal),
    };
    // It is ignored.
    Some(ExitCode::from(u8::try_from(128 + signal.as_raw()).unwrap_or(1)))
}
