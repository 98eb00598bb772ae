use super::job_control;
use super::on_lost::KILL_AFTER;
use super::running::Running;
use super::signals::is_end;
use super::{ChildCommand, Signals};
use crate::exit::Failure;
use rustix::process::Signal;
use std::process::ExitStatus;
use std::sync::Arc;

/// Runs a command to its end, and passes signals on to it.
///
/// # Errors
/// `NotRunnable` when no process can be made.
///
/// # Cancel safety
/// Dropping it kills the command.
pub(crate) async fn run(command: &ChildCommand, signals: &mut Signals) -> Result<ExitStatus, Failure> {
    run_after(command, signals, async |_| ()).await
}

/// As [`run`], and does `before` when a signal came, until it is done or the command has ended: then the
/// signal is passed on.
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
    let mut is_ending = false;
    loop {
        let signal = tokio::select! {
            () = running.ended() => break,
            signal = signals.next() => signal,
        };
        if signal == Signal::TSTP {
            job_control::suspend(&group);
            continue;
        }
        tokio::select! {
            () = running.ended() => break,
            () = before(signal) => group.signal(signal),
        }
        is_ending |= is_end(signal);
    }
    if is_ending {
        running.end_rest(KILL_AFTER).await;
    }
    Ok(running.collect()?.status)
}
