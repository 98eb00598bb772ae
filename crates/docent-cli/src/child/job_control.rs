//! Terminal of a command: its group is the one in the foreground while it runs, so that it may read, and that
//! Ctrl-C and Ctrl-Z reach it. `docent` never stops while the command runs on.

use super::group::Group;
use nix::sys::signal::{SigSet, Signal as Blocked};
use nix::unistd::{self, getppid};
use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

/// Our own group; `None` where it has no number in our namespace.
pub(super) fn own_group() -> Option<Pid> {
    Pid::from_raw(unistd::getpgrp().as_raw())
}

/// Group of the process that started us; `None` where it has no number in our namespace.
fn group_of_parent() -> Option<Pid> {
    Pid::from_raw(unistd::getpgid(Some(getppid())).ok()?.as_raw())
}

/// Group in the foreground of the terminal on standard input, if that is one.
pub(super) fn foreground() -> Option<Pid> {
    isatty(stdin()).then(|| tcgetpgrp(stdin()).ok()).flatten()
}

/// Group in the foreground of the terminal on any of the standard streams.
pub(super) fn terminal_of() -> Option<Pid> {
    foreground().or_else(|| tcgetpgrp(stdout()).ok()).or_else(|| tcgetpgrp(stderr()).ok())
}

/// Blocks SIGTTIN and SIGTTOU in this thread, and in those that it starts from now on. The kernel sends them
/// to all of our group when a neighbour in a pipeline uses the terminal from the background: a `docent` that
/// was stopped by that could not end its command before the lease does.
pub(super) fn block_terminal_stops() -> nix::Result<()> {
    terminal_stops().thread_block()
}

fn terminal_stops() -> SigSet {
    SigSet::from_iter([Blocked::SIGTTIN, Blocked::SIGTTOU])
}

/// Puts `group` into the foreground, if `from` is there.
fn hand_over(from: Option<Pid>, group: Option<Pid>) {
    // A group in the background would be stopped when it does this, if that signal were not blocked.
    if let Some(group) = group
        && foreground().is_some_and(|foreground| Some(foreground) == from)
    {
        let _ = tcsetpgrp(stdin(), group);
    }
}

/// Makes this process, which becomes a command, one that the terminal can stop. Its group is put into the
/// foreground before, if its parent's was there. In a pipeline it is not: the neighbours, in the parent's
/// group, may need the terminal as well.
pub(super) fn take_terminal() {
    // The number of the foreground group is told of the process's own terminal alone: both are the same.
    if tcgetpgrp(stdout()).is_ok() {
        hand_over(group_of_parent(), own_group());
    }
    let _ = terminal_stops().thread_unblock();
}

/// Puts our group into the foreground in place of the command's.
pub(super) fn take_terminal_back(group: &Group) {
    hand_over(Some(group.id()), own_group());
}

/// Stops with a command that was stopped at its terminal, as the shell that started us expects. A command
/// that was stopped because it needs the terminal, which is ours, gets it; true when it has to wait for that.
/// Elsewhere a stopped command is left alone.
pub(super) fn stop_with(group: &Group) -> bool {
    let signal = group.note_stop();
    let front = foreground();
    if front == Some(group.id()) {
        // It stops our neighbours here, and us in `suspend`.
        if let Some(own) = own_group() {
            let _ = kill_process_group(own, Signal::TTIN);
        }
        suspend(group);
        return false;
    }
    [Some(Signal::TTIN), Some(Signal::TTOU)].contains(&signal) && front.is_some() && !give_terminal(group)
}

/// Gives our terminal to a command that was stopped because it needs it, and lets the command go on. False
/// while the terminal is not ours, as before a shell's `fg`, which tells us nothing.
pub(super) fn give_terminal(group: &Group) -> bool {
    hand_over(own_group(), Some(group.id()));
    let has_it = foreground() == Some(group.id());
    if has_it {
        group.go_on();
    }
    has_it
}

/// Stops the command, then this process, until the shell lets it go on, and the command with it. The lease
/// runs meanwhile.
pub(super) fn suspend(group: &Group) {
    let was_in_front = foreground() == Some(group.id());
    // Also a command that ignores SIGTSTP is not to run on without us.
    group.signal(Signal::STOP);
    take_terminal_back(group);
    suspend_alone();
    if was_in_front {
        hand_over(own_group(), Some(group.id()));
    }
    group.go_on();
}

/// Stops this process until the shell lets it go on. The signal that is blocked stands in for SIGTSTP, which
/// we listen for: it stops us in no group that nobody could let go on.
pub(super) fn suspend_alone() {
    let stop = SigSet::from(Blocked::SIGTTIN);
    if kill_process(getpid(), Signal::TTIN).is_ok() && stop.thread_unblock().is_ok() {
        // We stood still in that call.
        let _ = stop.thread_block();
    }
}
