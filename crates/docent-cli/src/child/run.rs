use super::job_control;
use super::on_lost::KILL_AFTER;
use super::running::Running;
use super::{ChildCommand, Signals};
use crate::exit::Failure;
use rustix::process::Signal;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// True for the ending of a command that could not be run.
pub(crate) fn was_not_run(status: ExitStatus) -> bool {
    matches!(status.code(), Some(126 | 127))
}

/// Runs a command to its end, and passes signals on to it. Processes that it leaves in its group are ended.
///
/// # Errors
/// `NotRunnable` when no process can be made.
///
/// # Cancel safety
/// Dropping it kills the command.
pub(crate) async fn run(command: &ChildCommand, signals: &mut Signals) -> Result<ExitStatus, Failure> {
    run_after(command, signals, async |_| ()).await
}

/// As [`run`], and does `before` when a signal came, until it is done, the command has ended, or another
/// signal asks for the end: then the signal is passed on.
///
/// # Errors
/// As [`run`].
///
/// # Cancel safety
/// As [`run`].
pub(crate) async fn run_after(
    command: &ChildCommand,
    signals: &mut Signals,
    mut before: impl AsyncFnMut(Signal),
) -> Result<ExitStatus, Failure> {
    signals.hear_suspend()?;
    let mut running = Running::start(command, None, None)?;
    let group = Arc::clone(running.group());
    loop {
        let signal = tokio::select! {
            () = running.ended() => break,
            signal = signals.next() => signal,
        };
        if signal == Signal::TSTP {
            job_control::suspend(&group);
            continue;
        }
        let last = tokio::select! {
            () = running.ended() => break,
            () = before(signal) => signal,
            again = signals.asked_to_end(&group) => again,
        };
        group.pass_on(signal);
        if last != signal {
            group.pass_on(last);
        }
    }
    running.end_rest(KILL_AFTER, signals).await;
    Ok(running.collect()?.status)
}

/// Runs a command to its end, without passing signals on. One that takes longer than `limit` is killed, with
/// all in its group: then there is no status.
///
/// # Errors
/// As [`run`].
///
/// # Cancel safety
/// As [`run`].
pub(crate) async fn run_within(
    command: &ChildCommand,
    limit: Duration,
) -> Result<Option<ExitStatus>, Failure> {
    let mut running = Running::start(command, None, None)?;
    let ended = timeout(limit, running.ended()).await;
    running.group().signal(Signal::KILL);
    let status = running.collect()?.status;
    Ok(ended.is_ok().then_some(status))
}
