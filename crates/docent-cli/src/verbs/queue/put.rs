use super::arguments::Put;
use super::lines::Lines;
use crate::app::App;
use crate::child::Signals;
use crate::exit::{Ending, Failure, Outcome};
use crate::input;
use bytes::Bytes;
use docent::queue::{PutError, PutOptions, Queue};
use futures_util::FutureExt;
use serde::Serialize;
use tokio::io::stdin;

/// Maximum number of items in one step, and maximum number of their bytes. A request has 1 MiB by default.
const BATCH: (usize, usize) = (128, 256 * 1024);

/// Puts the given items, or those of standard input, in their order.
///
/// Items that are available together are put in one step. The next step starts when the previous one is
/// acknowledged. So if an item fails, the items before it are in the queue and none after it, and a slow
/// queue slows its producer.
pub(super) async fn run(app: &App, queue: &Queue<Bytes>, arguments: &Put, signals: &mut Signals) -> Outcome {
    let options = PutOptions::new().priority(arguments.priority);
    let options = arguments.delay.map_or(options, |delay| options.delay(delay));
    let mut putter = Putter { queue, options, done: 0, unknown: 0, noun: "item" };
    let put = async {
        if arguments.whole {
            let item = Bytes::from(input::all().await?);
            putter.put(&mut Batch { bytes: item.len(), items: vec![item] }).await
        } else if arguments.items.is_empty() {
            putter.noun = "line";
            putter.put_lines().await
        } else {
            putter.put_all(&arguments.items).await
        }
    };
    match signals.or(put).await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => return Err(failure.with(&format!("; {}", putter.put_so_far()))),
        Err(signal) => {
            app.output.remark(format!("ended by a signal; {}", putter.put_so_far()));
            return Err(signal);
        }
    }
    app.output.remark(format!("put {} into {}", putter.done, queue.path()));
    if app.output.is_json() {
        app.output.json(&Done { path: queue.path(), put: putter.done })?;
    }
    Ok(Ending::Done)
}

/// Number of items that were put, as shown in JSON.
#[derive(Debug, Serialize)]
struct Done<'a> {
    path: &'a str,
    put: usize,
}

/// Items on their way into a queue.
struct Putter<'a> {
    queue: &'a Queue<Bytes>,
    options: PutOptions,
    /// Number of items that are in the queue.
    done: usize,
    /// Number of the following items whose outcome is unknown.
    unknown: usize,
    /// Noun for an item in messages.
    noun: &'static str,
}

impl Putter<'_> {
    async fn put_all(&mut self, items: &[String]) -> Result<(), Failure> {
        let mut batch = Batch::default();
        for item in items {
            self.add(&mut batch, item.clone().into()).await?;
        }
        self.put(&mut batch).await
    }

    /// Puts each line of standard input as it arrives, without its line end.
    async fn put_lines(&mut self) -> Result<(), Failure> {
        let mut lines = Lines::new(stdin());
        let mut batch = Batch::default();
        loop {
            // Do not delay complete lines by waiting for a line that has not arrived yet.
            let line = match lines.next().now_or_never() {
                Some(line) => line,
                None => {
                    self.put(&mut batch).await?;
                    lines.next().await
                }
            };
            let Ok(Some(line)) = line else {
                self.put(&mut batch).await?;
                return line.map(drop);
            };
            self.add(&mut batch, line).await?;
        }
    }

    /// Adds an item to a batch. A full batch is put first.
    async fn add(&mut self, batch: &mut Batch, item: Bytes) -> Result<(), Failure> {
        if !batch.has_room(&item) {
            self.put(batch).await?;
        }
        batch.bytes += item.len();
        batch.items.push(item);
        Ok(())
    }

    /// Puts a batch in one step.
    async fn put(&mut self, batch: &mut Batch) -> Result<(), Failure> {
        let items = std::mem::take(batch).items;
        if items.is_empty() {
            return Ok(());
        }
        self.unknown = items.len();
        let put = self.queue.put_all_with(&items, self.options).await;
        match &put {
            Ok(()) => (self.done, self.unknown) = (self.done + items.len(), 0),
            Err(PutError::Core(error)) if error.may_have_applied() => {}
            Err(_) => self.unknown = 0,
        }
        Ok(put?)
    }

    /// Describes the items that were put, by their numbers.
    fn put_so_far(&self) -> String {
        let Self { done, unknown, noun, .. } = *self;
        let range = |from: usize, to: usize| match to {
            _ if from == to => format!("{noun} {to}"),
            _ => format!("{noun}s {from} to {to}"),
        };
        match (done, unknown) {
            (0, 0) => format!("no {noun} was put"),
            (0, _) => format!("{} may have been put, and none after", range(1, unknown)),
            (_, 0) => format!("put: {}, and none after", range(1, done)),
            _ => format!(
                "put: {}; {} may have been put, and none after",
                range(1, done),
                range(done + 1, done + unknown)
            ),
        }
    }
}

/// Items to put in one step.
#[derive(Debug, Default)]
struct Batch {
    items: Vec<Bytes>,
    bytes: usize,
}

impl Batch {
    fn has_room(&self, item: &Bytes) -> bool {
        self.items.is_empty() || (self.items.len() < BATCH.0 && self.bytes + item.len() <= BATCH.1)
    }
}
