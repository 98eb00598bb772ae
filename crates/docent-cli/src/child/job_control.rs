//! Terminal of a command: its group is the one in the foreground while it runs, so that it may read, and that
//! Ctrl-C and Ctrl-Z reach it.

use super::group::Group;
use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::{Pid, Signal, getpgid, getpgrp, getppid, kill_process_group};
use rustix::stdio::stdin;
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

/// Group in the foreground of the terminal on standard input, if that is one.
fn foreground() -> Option<Pid> {
    isatty(stdin()).then(|| tcgetpgrp(stdin()).ok()).flatten()
}

/// Puts `group` into the foreground, if `from` is there.
fn hand_over(from: Option<Pid>, group: Pid) {
    if foreground().is_none_or(|foreground| Some(foreground) != from) {
        return;
    }
    // A group in the background is stopped when it does this, unless its signal for that is blocked.
    let stop = SigSet::from(Blocked::SIGTTOU);
    if stop.thread_block().is_ok() {
        let _ = tcsetpgrp(stdin(), group);
        let _ = stop.thread_unblock();
    }
}

/// Puts the group of this process, which becomes a command, into the foreground if its parent's was there.
pub(super) fn take_terminal() {
    hand_over(getpgid(getppid()).ok(), getpgrp());
}

/// Puts our group into the foreground in place of the command's.
pub(super) fn take_terminal_back(group: &Group) {
    hand_over(Some(group.id()), getpgrp());
}

/// Stops with a command that was stopped at its terminal, as the shell that started us expects, and goes on
/// with it. The lease runs meanwhile. Elsewhere a stopped command is left alone.
pub(super) fn stop_with(group: &Group) {
    group.note_stop();
    if foreground() != Some(group.id()) {
        return;
    }
    take_terminal_back(group);
    // We stand still in this call until the shell lets us go on.
    let _ = kill_process_group(getpgrp(), Signal::TSTP);
    hand_over(Some(getpgrp()), group.id());
    group.signal(Signal::CONT);
}
