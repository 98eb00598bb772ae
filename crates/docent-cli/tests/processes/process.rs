//! Processes by number.

use docent_testkit::eventually;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Time limit of every wait, which only a wait without an end reaches, also on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Returns true while a process runs or is stopped. A process that has ended but was not collected does not
/// count.
pub(crate) fn is_alive(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
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
    let is_keeper = |process: i32| {
        let words = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
        words.contains("__keep-group")
    };
    numbers().filter(|process| parent_of(*process) == Some(docent) && is_keeper(*process)).collect()
}

/// Returns the descendants of a process.
pub(crate) fn descendants_of(process: i32) -> Vec<i32> {
    let mut found = vec![process];
    let parents: Vec<_> = numbers().filter_map(|number| Some((number, parent_of(number)?))).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(number, _)| number));
        next += 1;
    }
    found.split_off(1)
}

/// Returns the processes that have a file open, each as soon as it is found.
pub(crate) fn holders_of(file: &Path) -> impl Iterator<Item = i32> {
    let has_open = move |process: &i32| {
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|open| open == file)
    };
    numbers().filter(has_open)
}

/// Returns the numbers of all processes, the newest first: they may end soon.
fn numbers() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").unwrap();
    let mut numbers: Vec<i32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers.into_iter()
}

fn parent_of(process: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

/// Returns true for a stopped process. A `sh` that has called `vfork` for a program that was stopped before
/// its `exec` does not appear as stopped. Therefore commands that will be stopped use bash, which does not
/// call `vfork`.
fn is_stopped(process: i32) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default().contains(") T ")
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

/// Sends a signal to one process, unless the process has ended.
pub(crate) fn send_if_alive(process: i32, signal: Signal) {
    let sent = try_send(process, signal);
    assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
}
