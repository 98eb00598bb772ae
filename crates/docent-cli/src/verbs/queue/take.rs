use super::arguments::Take;
use super::item::{ShownItem, print};
use crate::app::App;
use crate::child::{ChildCommand, Finished, KillPolicy, Signals, run_held};
use crate::exit::{Ending, Failure, FailureKind, Outcome};
use bytes::Bytes;
use docent::Error;
use docent::queue::{Delivery, Queue};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Minimum time from the start of a failed command to the next one.
const FAILURE_INTERVAL: Duration = Duration::from_secs(1);

/// Takes one item, or one after the other, and prints each item or runs the command for it.
pub(super) async fn run(
    app: &App,
    queue: &Queue<Bytes>,
    arguments: &Take,
    policy: KillPolicy,
    signals: &mut Signals,
) -> Outcome {
    if arguments.command.is_empty() && app.output.is_closed() {
        return Err(Failure::usage(
            "standard output is closed: each item would be lost; to discard items, use `> /dev/null`",
        ));
    }
    let mut is_first = true;
    loop {
        let Some(delivery) = signals.or(next(queue, arguments)).await?? else {
            // With --follow, all available items were processed.
            return if is_first || !arguments.follow { Err(none(queue)) } else { Ok(Ending::Done) };
        };
        is_first = false;
        let began = Instant::now();
        let outcome = match ChildCommand::new(&arguments.command) {
            Some(command) => run_command(app, queue.path(), delivery, command, policy, signals).await,
            None => print_item(app, queue.path(), delivery).await,
        };
        if !arguments.follow {
            return outcome;
        }
        let is_processed = report_outcome(app, outcome)?;
        signals.check_end()?;
        if !is_processed {
            // The cause of the failure may affect the next item as well: the delay keeps it from using up a
            // backlog within moments.
            signals.or(sleep_until(began + FAILURE_INTERVAL)).await?;
        }
    }
}

/// Returns the next item, or `None` when the wait is over.
async fn next(queue: &Queue<Bytes>, arguments: &Take) -> Result<Option<Delivery<Bytes>>, Error> {
    match (arguments.nonblock, arguments.wait) {
        (true, _) => queue.try_take().await,
        (false, Some(patience)) => queue.take_timeout(patience).await,
        (false, None) => queue.take().await.map(Some),
    }
}

fn none(queue: &Queue<Bytes>) -> Failure {
    Failure::not_acquired(format!("no item became available in {}", queue.path()))
}

/// Prints an item, and acknowledges it once it is written: an item that could not be written stays in the
/// queue.
async fn print_item(app: &App, path: &str, delivery: Delivery<Bytes>) -> Outcome {
    let shown = ShownItem::new(path, delivery.item()).named(delivery.name(), delivery.deliveries());
    print(&app.output, delivery.item(), &shown)?;
    delivery.ack().await?;
    Ok(Ending::Done)
}

/// Runs the command for an item. If the command ends with 0, the item is acknowledged. Otherwise the item
/// returns to the queue after the queue's growing delay, or immediately when this process ends.
async fn run_command(
    app: &App,
    path: &str,
    delivery: Delivery<Bytes>,
    command: ChildCommand,
    policy: KillPolicy,
    signals: &mut Signals,
) -> Outcome {
    let deliveries = delivery.deliveries().map_or_else(String::new, |count| count.to_string());
    let command = command.under(path, Some(delivery.fence())).variable("DOCENT_ITEM", delivery.name());
    let command = command.variable("DOCENT_DELIVERIES", deliveries).with_input(delivery.item().clone());
    let Finished { guard, exit, lost, .. } =
        run_held(delivery, &command, policy, &app.output, signals).await?;
    if let Some(reason) = lost {
        let text = format!("the item was lost while {:?} ran: {reason}", command.name());
        if policy.ends_command() {
            return Err(Failure::lost(text));
        }
        app.output.remark(text);
        return Ok(Ending::Child(exit));
    }
    match exit.success() {
        true => guard.ack().await?,
        false => guard.nack()?,
    }
    Ok(Ending::Child(exit))
}

/// Returns true if the item was processed, and reports an item that was not. Fails if the next item would
/// fail in the same way.
fn report_outcome(app: &App, outcome: Outcome) -> Result<bool, Failure> {
    match outcome {
        Ok(Ending::Child(exit)) if exit.was_not_run() => {
            Err(Failure::not_runnable("the command cannot be run; the item is back in the queue"))
        }
        Ok(Ending::Child(exit)) if !exit.success() => {
            app.output.remark(format!("the command ended with {exit}; the item returns to the queue"));
            Ok(false)
        }
        Err(failure) if failure.kind() == FailureKind::Lost => {
            app.output.remark(failure.to_string());
            Ok(false)
        }
        Ok(_) => Ok(true),
        Err(failure) => Err(failure),
    }
}
