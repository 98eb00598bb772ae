//! Children of this process: those that it has started, and orphans that it has adopted.

use super::proc::each_process;
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getpid};
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::timeout;

/// Interval at which the first process of a namespace looks for orphans that have ended.
const ORPHAN_INTERVAL: Duration = Duration::from_secs(1);

/// Children that were started by this process. Something else collects their ends.
static STARTED: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn started() -> MutexGuard<'static, Vec<Pid>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a child.
///
/// # Errors
/// Same as [`Command::spawn`].
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut started = started();
    let child = command.spawn()?;
    // The number of a child that was collected may be that of an orphan by now.
    started.retain(|number| ended(Id::Pid(*number)) != Err(Errno::ECHILD));
    started.push(Pid::from_raw(child.id().cast_signed()));
    Ok(child)
}

/// Returns a child that has ended, if there is one, without collecting its end.
fn ended(children: Id<'_>) -> nix::Result<Option<Pid>> {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    Ok(waitid(children, flags)?.pid())
}

/// Makes this process the parent of descendants whose parents have ended, so that it can find them. Only
/// Linux can do this.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Collects orphans as they end, if this process is the first of its namespace, as in a container: the kernel
/// makes it the parent of every orphan, also while no command runs. Must be called on a runtime.
pub(crate) fn collect_orphans_if_first() {
    if getpid() != Pid::from_raw(1) {
        return;
    }
    // Without this signal, only the interval remains.
    let mut changes = unix::signal(SignalKind::child()).ok();
    tokio::spawn(async move {
        loop {
            collect_orphans();
            let changed = async {
                match &mut changes {
                    Some(changes) => drop(changes.recv().await),
                    None => std::future::pending().await,
                }
            };
            // An orphan may have ended behind a child that is collected later, without another signal.
            let _ = timeout(ORPHAN_INTERVAL, changed).await;
        }
    });
}

/// Collects the ends of these children, unless something else must collect them. Returns true if there were
/// any.
pub(super) fn collect(ended: &[i32]) -> bool {
    let started = started();
    let orphans = ended.iter().map(|number| Pid::from_raw(*number)).filter(|it| !started.contains(it));
    // All are collected, not only the first one.
    orphans.filter(|orphan| collect_one(*orphan)).count() > 0
}

/// Collects the end of an orphan. Returns false if that was done before.
fn collect_one(orphan: Pid) -> bool {
    // `nix` does not know real-time signals: it returns an error about one after the orphan was collected.
    waitid(Id::Pid(orphan), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) != Err(Errno::ECHILD)
}

/// Collects orphans that this process has adopted and that have ended, up to the first child that something
/// else must collect. Process 1 adopts all orphans of its namespace.
pub(super) fn collect_orphans() {
    loop {
        match ended(Id::All) {
            Ok(Some(orphan)) if !started().contains(&orphan) => {
                collect_one(orphan);
            }
            // A real-time signal has ended an orphan, and `nix` does not say which.
            Err(Errno::EINVAL) if collect_listed().unwrap_or(false) => {}
            _ => return,
        }
    }
}

/// Collects the orphans that `/proc` lists as ended. Returns true if there were any.
fn collect_listed() -> io::Result<bool> {
    let (own, mut ended) = (getpid().as_raw(), Vec::new());
    each_process(|process| {
        ended.extend((process.parent == own && !process.is_running).then_some(process.number));
        Ok(())
    })?;
    Ok(collect(&ended))
}
