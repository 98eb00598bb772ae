use super::job_control;
use super::left;
use super::on_lost::KILL_AFTER;
use super::running::{Collected, Running};
use super::{ChildCommand, Signals};
use crate::exit::Failure;
use rustix::process::Signal;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Number of processes that are left behind before no more is started that may be the next one.
const MOST_LEFT: usize = 4;

/// True for the ending of a command that could not be run.
pub(crate) fn was_not_run(status: ExitStatus) -> bool {
    matches!(status.code(), Some(126 | 127))
}

/// True for a signal that tells a command to end. SIGHUP and SIGQUIT do not count: they tell many services to
/// read their settings again, or to say how they stand.
pub(crate) fn is_stop(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT].contains(&signal)
}

/// Runs a command to its end, and passes signals on to it. Processes that it leaves in its group are ended.
///
/// # Errors
/// `NotRunnable` when no process can be made.
///
/// # Cancel safety
/// Dropping it kills the command.
pub(crate) async fn run(command: &ChildCommand, signals: &mut Signals) -> Result<ExitStatus, Failure> {
    run_after(command, signals, async |_| (), |_| ()).await
}

/// As [`run`], and does `before` when a signal came, until it is done, the command has ended, or another
/// signal [tells it to end](is_stop): then the signal is passed on, which `after` hears of.
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
    after: impl Fn(Signal),
) -> Result<ExitStatus, Failure> {
    signals.hear_suspend()?;
    let mut running = Running::start(command, None, None)?;
    let group = Arc::clone(running.group());
    let pass_on = |signal| {
        group.pass_on(signal);
        after(signal);
    };
    'running: loop {
        let signal = tokio::select! {
            () = running.ended() => break,
            signal = signals.next() => signal,
        };
        if signal == Signal::TSTP {
            job_control::suspend(&group);
            continue;
        }
        let mut before = pin!(before(signal));
        let again = loop {
            tokio::select! {
                () = running.ended() => break 'running,
                () = &mut before => break None,
                again = signals.asked_to_end(&group) => match is_stop(again) {
                    true => break Some(again),
                    false => pass_on(again),
                },
            }
        };
        pass_on(signal);
        again.into_iter().filter(|again| *again != signal).for_each(pass_on);
    }
    running.end_rest(KILL_AFTER, signals).await;
    let Collected { status, typed, .. } = running.collect()?;
    typed.into_iter().for_each(|signal| signals.note_end(signal));
    Ok(status)
}

/// Runs a command to its end, without passing signals on. One that takes longer than `limit` is killed, with
/// all in its group: then there is no status. One that does not end by that, as where the kernel waits for a
/// disk, is left behind.
///
/// # Errors
/// As [`run`]; `NotRunnable` when [too many](MOST_LEFT) were left behind.
///
/// # Cancel safety
/// As [`run`].
pub(crate) async fn run_within(
    command: &ChildCommand,
    limit: Duration,
) -> Result<Option<ExitStatus>, Failure> {
    let left = left::collect();
    if left >= MOST_LEFT {
        return Err(Failure::not_runnable(format!("{left} before it were killed, and have not ended")));
    }
    let mut running = Running::start(command, None, None)?;
    let ended = timeout(limit, running.ended()).await;
    running.group().signal(Signal::KILL);
    if ended.is_err() && !running.ended_when_killed().await {
        running.leave();
        return Ok(None);
    }
    let status = running.collect()?.status;
    Ok(ended.is_ok().then_some(status))
}
