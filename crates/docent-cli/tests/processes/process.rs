//! Processes by number.

use docent_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, SystemTime};

/// Time limit of every wait, which only a wait without an end reaches, also on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Returns true while a process runs or is stopped. A process that has ended but was not collected does not
/// count.
pub(crate) fn is_alive(process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The fields follow the program's name, which is in parentheses.
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// Waits until a process has ended.
pub(crate) async fn until_dead(process: i32) {
    eventually(PATIENCE, async || is_alive(process), |alive| !alive).await.unwrap();
}

/// Returns the time of day at which a process was last seen alive, in seconds.
pub(crate) async fn time_of_death(process: i32) -> f64 {
    let last_check = std::cell::Cell::new(SystemTime::now());
    let check = async || {
        last_check.set(SystemTime::now());
        is_alive(process)
    };
    eventually(PATIENCE, check, |alive| !alive).await.unwrap();
    last_check.get().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Returns the process that keeps the group of the command of a `docent`.
pub(crate) fn keeper_of(docent: i32) -> i32 {
    keepers_of(docent)[0]
}

/// Returns the running keepers among the children of a process.
pub(crate) fn keepers_of(docent: i32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap();
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let read = |process: i32, file: &str| {
        std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default()
    };
    let is_child = |process: i32| {
        let stat = read(process, "stat");
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(&docent.to_string())
    };
    numbers.filter(|one| is_child(*one) && read(*one, "cmdline").contains("__keep-group")).collect()
}

/// Returns true for a stopped process. A `sh` that has called `vfork` for a program that was stopped before
/// its `exec` does not appear as stopped. Therefore commands that will be stopped use bash, which does not
/// call `vfork`.
fn is_stopped(process: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default().contains(") T ")
}

/// Waits until a process is stopped.
pub(crate) async fn until_stopped(process: i32) {
    eventually(PATIENCE, async || is_stopped(process), |stopped| *stopped).await.unwrap();
}

/// Sends a signal to one process.
pub(crate) fn send(process: i32, signal: Signal) {
    try_send(process, signal).unwrap();
}

/// Sends a signal to one process. Fails if the process has ended.
pub(crate) fn try_send(process: i32, signal: Signal) -> rustix::io::Result<()> {
    kill_process(Pid::from_raw(process).unwrap(), signal)
}
