//! Processes by their numbers.

use docent_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// True while a process runs or is stopped; one that has ended and was not collected does not count.
pub(crate) fn is_alive(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the program's name, which is in parentheses.
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// Waits until a process is gone.
pub(crate) async fn until_dead(process: i32) {
    eventually(PATIENCE, async || is_alive(process), |alive| !alive).await.unwrap();
}

/// Sends a signal to one process.
pub(crate) fn send(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).unwrap(), signal).unwrap();
}
