use super::arguments::{Action, Arguments};
use super::{dead, peek, put, take};
use crate::app::App;
use crate::exit::{Failure, Outcome};
use crate::verbs::kind_at::{ensure_queue, or_unread};
use bytes::Bytes;
use docent::Client;
use docent::config::Raw;
use docent::queue::Queue;

/// Runs the requested action until it is done or a signal comes.
pub(crate) async fn run(app: &App, arguments: &Arguments) -> Outcome {
    app.with_signals(async |client, signals| {
        let queue = |path: &str| queue(client, path, None);
        let is_queue = signals.or(ensure_queue(client, arguments.action.path())).await?;
        match &arguments.action {
            Action::Put(_) => or_unread(is_queue)?,
            _ => is_queue?,
        }
        match &arguments.action {
            Action::Put(put) => {
                let queue = self::queue(client, &put.path, Some(put.capacity))?;
                put::run(app, &queue, put, signals).await
            }
            Action::Take(take) => {
                let policy = take.loss.policy(client)?;
                take::run(app, &queue(&take.path)?, take, policy, signals).await
            }
            Action::Peek(peek) => signals.or(peek::peek(app, &queue(&peek.path)?)).await?,
            Action::Len(len) => signals.or(peek::len(app, &queue(&len.path)?)).await?,
            Action::Dead(dead) => signals.or(dead::list(app, &queue(&dead.path)?)).await?,
            Action::Requeue(requeue) => {
                signals.or(dead::requeue(app, &queue(&requeue.path)?, requeue)).await?
            }
        }
    })
    .await
}

/// Returns the queue at `path`, with items as bytes, because the command does not know their meaning. A
/// capacity of 0 is no limit; `None` is that of the library.
fn queue(client: &Client, path: &str, capacity: Option<usize>) -> Result<Queue<Bytes>, Failure> {
    let builder = Queue::builder_with(client, path, Raw);
    let builder = match capacity {
        Some(0) => builder.unbounded(),
        Some(items) => builder.capacity(items),
        None => builder,
    };
    Ok(builder.build()?)
}
