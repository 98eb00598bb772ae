//! Terminal of a command. The command's group is in the foreground while it runs, so that it can read from
//! the terminal and receives Ctrl-C and Ctrl-Z. `docent` never stops while the command keeps running.

use super::group::Group;
use nix::sys::signal::{SigSet, Signal as Blocked};
use nix::unistd::{self, getppid};
use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

/// Returns docent's own group, or `None` if the group has no number in this namespace.
pub(super) fn own_group() -> Option<Pid> {
    Pid::from_raw(unistd::getpgrp().as_raw())
}

/// Returns the group of the parent process, or `None` if the group has no number in this namespace.
fn group_of_parent() -> Option<Pid> {
    Pid::from_raw(unistd::getpgid(Some(getppid())).ok()?.as_raw())
}

/// Returns the foreground group of the terminal on standard input, if standard input is a terminal.
pub(super) fn foreground() -> Option<Pid> {
    isatty(stdin()).then(|| tcgetpgrp(stdin()).ok()).flatten()
}

/// Returns the foreground group of the terminal on any of the standard streams.
pub(super) fn terminal_of() -> Option<Pid> {
    foreground().or_else(|| tcgetpgrp(stdout()).ok()).or_else(|| tcgetpgrp(stderr()).ok())
}

/// Blocks SIGTTIN and SIGTTOU in this thread and in the threads that it starts from now on. The kernel sends
/// them to the whole group when another process of a pipeline uses the terminal from the background. A
/// `docent` stopped by them could not end its command before the lease ends.
pub(super) fn block_terminal_stops() -> nix::Result<()> {
    terminal_stops().thread_block()
}

fn terminal_stops() -> SigSet {
    SigSet::from_iter([Blocked::SIGTTIN, Blocked::SIGTTOU])
}

/// Puts `group` into the foreground if `from` is there now.
fn hand_over_terminal(from: Option<Pid>, group: Option<Pid>) {
    // A background group that does this would be stopped if SIGTTOU were not blocked.
    if let Some(group) = group
        && foreground().is_some_and(|foreground| Some(foreground) == from)
    {
        let _ = tcsetpgrp(stdin(), group);
    }
}

/// Lets the terminal stop this process, which becomes a command. Puts its group into the foreground first, if
/// the parent's group was there. In a pipeline the parent's group keeps the foreground: the other processes
/// of the pipeline are in that group and may need the terminal too.
pub(super) fn take_terminal() {
    // The foreground group can be queried only for the process's own terminal, so both terminals are the
    // same.
    if tcgetpgrp(stdout()).is_ok() {
        hand_over_terminal(group_of_parent(), own_group());
    }
    let _ = terminal_stops().thread_unblock();
}

/// Puts docent's own group into the foreground in place of the command's.
pub(super) fn take_terminal_back(group: &Group) {
    hand_over_terminal(Some(group.id()), own_group());
}

/// Stops together with a command that was stopped at its terminal, as the parent shell expects. A command
/// that was stopped because it needs docent's terminal gets the terminal; the function returns true if the
/// command has to wait for it. Without a terminal, a stopped command is left alone.
pub(super) fn stop_with(group: &Group) -> bool {
    let signal = group.note_stop();
    let front = foreground();
    if front == Some(group.id()) {
        // This signal stops the other processes of docent's group; `suspend` stops docent itself.
        if let Some(own) = own_group() {
            let _ = kill_process_group(own, Signal::TTIN);
        }
        suspend(group);
        return false;
    }
    [Some(Signal::TTIN), Some(Signal::TTOU)].contains(&signal) && front.is_some() && !give_terminal(group)
}

/// Gives docent's terminal to a command that was stopped because it needs it, and continues the command.
/// Returns false while docent does not have the terminal, for example before the shell's `fg`, which sends no
/// notification.
pub(super) fn give_terminal(group: &Group) -> bool {
    hand_over_terminal(own_group(), Some(group.id()));
    let has_it = foreground() == Some(group.id());
    if has_it {
        group.resume();
    }
    has_it
}

/// Stops the command and then this process, until the shell continues this process, which continues the
/// command. The lease keeps running meanwhile.
pub(super) fn suspend(group: &Group) {
    let was_in_front = foreground() == Some(group.id());
    // SIGSTOP, because a command that ignores SIGTSTP must not run without docent either.
    group.signal(Signal::STOP);
    take_terminal_back(group);
    suspend_alone();
    if was_in_front {
        hand_over_terminal(own_group(), Some(group.id()));
    }
    group.resume();
}

/// Stops this process until the shell continues it. The blocked SIGTTIN replaces SIGTSTP, for which docent
/// has a handler: SIGTTIN does not stop a process in an orphaned group, which nothing could continue.
pub(super) fn suspend_alone() {
    let stop = SigSet::from(Blocked::SIGTTIN);
    if kill_process(getpid(), Signal::TTIN).is_ok() && stop.thread_unblock().is_ok() {
        // The process was stopped inside that call.
        let _ = stop.thread_block();
    }
}
