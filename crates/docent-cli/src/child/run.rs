use super::abandoned;
use super::job_control;
use super::on_lost::KILL_AFTER;
use super::running::{Bond, Collected, Running};
use super::{ChildCommand, CommandExit, Signals};
use crate::exit::Failure;
use rustix::process::Signal;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum number of abandoned processes. Beyond it no command is started that may be abandoned as well.
const MAX_ABANDONED: usize = 4;

/// Returns true for a signal that asks a command to end. SIGHUP and SIGQUIT do not count: many services
/// reload their settings or print their state on them.
pub(crate) fn is_stop(signal: Signal) -> bool {
    [Signal::TERM, Signal::INT].contains(&signal)
}

/// Runs a command to its end and passes signals on to it. Processes that it leaves in its group are ended.
///
/// # Errors
/// `NotRunnable` if no process can be created.
///
/// # Cancel safety
/// Dropping the future kills the command.
pub(crate) async fn run(command: &ChildCommand, signals: &mut Signals) -> Result<CommandExit, Failure> {
    run_after(command, signals, async |_| (), |_| ()).await
}

/// Like [`run`], but calls `before` when a signal comes. It waits until `before` is done, the command has
/// ended, or another signal [asks it to end](is_stop). Then the signal is passed on and `after` is called.
///
/// # Errors
/// Same as [`run`].
///
/// # Cancel safety
/// Same as [`run`].
pub(crate) async fn run_after(
    command: &ChildCommand,
    signals: &mut Signals,
    mut before: impl AsyncFnMut(Signal),
    after: impl Fn(Signal),
) -> Result<CommandExit, Failure> {
    signals.listen_for_suspend()?;
    let mut running = Running::start(command, Bond::default())?;
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
                again = signals.next_end_request(&group) => match is_stop(again) {
                    true => break Some(again),
                    false => pass_on(again),
                },
            }
        };
        pass_on(signal);
        again.into_iter().filter(|again| *again != signal).for_each(pass_on);
    }
    running.end_rest(KILL_AFTER, signals).await;
    let Collected { exit, typed, .. } = running.collect()?;
    typed.into_iter().for_each(|signal| signals.note_end(signal));
    Ok(exit)
}

/// Runs a command to its end without passing signals on. A command that takes longer than `limit` is killed
/// together with its group, and the result is `None`. A command that still does not end, for example because
/// the kernel waits for a disk, is abandoned.
///
/// # Errors
/// Same as [`run`]; also `NotRunnable` if [too many](MAX_ABANDONED) commands were abandoned.
///
/// # Cancel safety
/// Same as [`run`].
pub(crate) async fn run_within(
    command: &ChildCommand,
    limit: Duration,
) -> Result<Option<CommandExit>, Failure> {
    let abandoned = abandoned::collect();
    if abandoned >= MAX_ABANDONED {
        return Err(Failure::not_runnable(format!(
            "{abandoned} earlier runs were killed and have not ended"
        )));
    }
    let mut running = Running::start(command, Bond::default())?;
    let ended = timeout(limit, running.ended()).await;
    running.group().kill();
    if ended.is_err() && !running.ended_when_killed().await {
        running.abandon();
        return Ok(None);
    }
    let exit = running.collect()?.exit;
    Ok(ended.is_ok().then_some(exit))
}
