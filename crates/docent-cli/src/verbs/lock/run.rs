use super::Arguments;
use super::any_guard::AnyGuard;
use super::kind::Lock;
use super::line::{HeldLine, revoked_message};
use super::progress;
use crate::app::App;
use crate::child::{ChildCommand, Finished, KillPolicy, Signals, run_held};
use crate::connect::close;
use crate::exit::{Ending, Failure, Outcome};
use docent::Client;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Acquires the lock, runs the command, and releases the lock.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    let mut signals = Signals::listen()?;
    let label = arguments.label.as_deref();
    let limit = arguments.answer_limit(app.global.timeout).map(|limit| (limit, Instant::now() + limit));
    let client = app.connect_or_signal(&mut signals, label, arguments.connect_limit()).await?;
    let outcome = locked(app, arguments, &client, limit, &mut signals).await;
    // This deletes the lock's node and ends the session, even if the wait was cancelled.
    close(&client).await;
    outcome
}

async fn locked(
    app: &App,
    arguments: &Arguments,
    client: &Client,
    limit: Option<(Duration, Instant)>,
    signals: &mut Signals,
) -> Outcome {
    let policy = arguments.loss.policy(client)?;
    let lock = Lock::new(client, arguments)?;
    let acquiring = acquire(app, arguments, client, &lock, signals);
    let held = match limit {
        // Each step of an acquire may take the time of an operation: over a slow link, all of them take a
        // multiple of that.
        Some((limit, end)) => timeout_at(end, acquiring).await.unwrap_or_else(|_| {
            let text = format!("cannot acquire {:?}: no answer within {limit:?}", arguments.path);
            Err(Failure::unreachable(text))
        }),
        None => acquiring.await,
    }?;
    // A signal that came together with the lock also ends the wait.
    signals.check()?;
    match ChildCommand::new(&arguments.command) {
        Some(command) => run_command(app, &arguments.path, held, &command, policy, signals).await,
        None => hold(app, &arguments.path, held, signals).await,
    }
}

async fn acquire(
    app: &App,
    arguments: &Arguments,
    client: &Client,
    lock: &Lock,
    signals: &mut Signals,
) -> Result<AnyGuard, Failure> {
    let waiting = async {
        tokio::select! {
            acquired = lock.acquire(arguments.patience()) => acquired,
            never = progress::report(&app.output, lock, &arguments.path, client.session_id()) => match never {},
        }
    };
    let acquired = signals.or(waiting).await?;
    acquired.map_err(|error| Failure::from(error).or_conflict(arguments.conflict_exit_code))
}

async fn run_command(
    app: &App,
    path: &str,
    held: AnyGuard,
    command: &ChildCommand,
    policy: KillPolicy,
    signals: &mut Signals,
) -> Outcome {
    let command = command.clone().under(path, held.fence());
    let Finished { guard, exit, lost, revoked, .. } =
        run_held(held, &command, policy, &app.output, signals).await?;
    drop(guard);
    if revoked {
        app.output.remark(revoked_message(path));
    }
    match lost {
        Some(reason) if policy.ends_command() => {
            Err(Failure::lost(format!("{path:?} was lost while {:?} ran: {reason}", command.name())))
        }
        _ => Ok(Ending::Child(exit)),
    }
}

/// Holds the lock until a signal comes or another client asks the holder to leave.
async fn hold(app: &App, path: &str, held: AnyGuard, signals: &mut Signals) -> Outcome {
    HeldLine { path, fence: held.fence() }.print(&app.output)?;
    tokio::select! {
        _ = signals.next() => Ok(Ending::Done),
        () = held.revoked() => {
            app.output.remark(revoked_message(path));
            Ok(Ending::Done)
        }
        reason = held.lost() => Err(Failure::lost(format!("{path:?} was lost: {reason}"))),
    }
}
