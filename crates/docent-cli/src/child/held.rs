use super::deadline::Deadline;
use super::lost_pipe::LostPipe;
use super::running::Running;
use super::{ChildCommand, KillPolicy, Signals};
use crate::exit::Failure;
use docent::guard::Guard;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

/// End of a command that ran under a guard.
#[derive(Debug)]
pub(crate) struct Finished<G> {
    /// The guard, which may be lost.
    pub(crate) guard: G,
    /// How the command ended.
    pub(crate) status: ExitStatus,
    /// Reason why the guard was lost, or was about to be, while the command ran.
    pub(crate) lost: Option<String>,
    /// Signals that were passed on.
    passed_on: Vec<Signal>,
}

impl<G> Finished<G> {
    /// True when the command was told to stop by us or from its terminal, and did.
    pub(crate) fn was_stopped(&self) -> bool {
        let by = self.status.signal();
        let typed = [Signal::INT, Signal::QUIT].map(|signal| Some(signal.as_raw())).contains(&by);
        let ends = |signal: &Signal| [Signal::TERM, Signal::INT, Signal::QUIT].contains(signal);
        typed || self.passed_on.iter().any(|signal| ends(signal) || Some(signal.as_raw()) == by)
    }

    /// True when the command could not be run.
    pub(crate) fn was_not_run(&self) -> bool {
        matches!(self.status.code(), Some(126 | 127))
    }
}

/// Runs a command for as long as `guard` is held. Signals are passed on to it. When the lease is about to end
/// it is told to stop, and then killed, as `policy` says: it is dead before somebody else can hold the lock.
///
/// # Errors
/// `NotRunnable` when no process can be made.
///
/// # Cancel safety
/// Dropping it kills the command, and then gives the guard up.
pub(crate) async fn run_held<G: Guard + 'static>(
    guard: G,
    command: &ChildCommand,
    policy: KillPolicy,
    signals: &mut Signals,
) -> Result<Finished<G>, Failure> {
    let guard = Arc::new(guard);
    let mut pipe = LostPipe::new().ok();
    let mut running = Running::start(command, pipe.as_ref())?;
    let mut deadline = deadline(&guard, policy, &running)?;
    let (mut lost, mut stopped, mut passed_on) = (None, false, Vec::new());
    loop {
        tokio::select! {
            biased;
            () = told(&mut deadline), if !stopped => {
                stopped = true;
                drop(pipe.take());
            }
            reason = guard.lost(), if lost.is_none() => {
                lost = Some(reason.to_string());
                drop(pipe.take());
                deadline.iter().for_each(Deadline::look);
            }
            () = running.ended() => break,
            signal = signals.next() => {
                running.group().signal(signal);
                if !passed_on.contains(&signal) {
                    passed_on.push(signal);
                }
            }
        }
    }
    if !guard.is_held() && lost.is_none() {
        lost = Some(guard.lost().await.to_string());
    }
    if deadline.is_some_and(Deadline::end) {
        // Processes that the command left in its group.
        running.group().signal(Signal::KILL);
        lost = lost.or_else(|| Some("no write was acknowledged for too long".to_owned()));
    }
    let status = running.collect()?;
    let guard = Arc::into_inner(guard).expect("the thread that shared it has ended");
    Ok(Finished { guard, status, lost, passed_on })
}

/// The deadline of a command, unless it may go on without the guard.
fn deadline<G: Guard + 'static>(
    guard: &Arc<G>,
    policy: KillPolicy,
    running: &Running,
) -> Result<Option<Deadline>, Failure> {
    if !policy.ends_command() {
        return Ok(None);
    }
    let (held, group) = (Arc::clone(guard), Arc::clone(running.group()));
    let deadline = Deadline::start(policy, group, move || held.lease_left());
    deadline.map(Some).map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))
}

async fn told(deadline: &mut Option<Deadline>) {
    match deadline {
        Some(deadline) => deadline.told().await,
        None => std::future::pending().await,
    }
}
