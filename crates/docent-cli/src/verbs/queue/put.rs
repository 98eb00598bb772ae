use super::arguments::Put;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::input;
use bytes::Bytes;
use docent::queue::{PutOptions, Queue};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

/// Puts the items that were given, or those of standard input, in their order. Each is put by itself: after a
/// failure the items before it are in the queue.
pub(super) async fn run(app: &App, queue: &Queue<Bytes>, arguments: &Put) -> Outcome {
    let options = PutOptions::new().priority(arguments.priority);
    let options = arguments.delay.map_or(options, |delay| options.delay(delay));
    let mut count = 0;
    for item in &arguments.items {
        queue.put_with(&Bytes::from(item.clone()), options).await?;
        count += 1;
    }
    if arguments.whole {
        queue.put_with(&input::all().await?.into(), options).await?;
        count = 1;
    } else if arguments.items.is_empty() {
        count = put_lines(queue, options).await?;
    }
    app.output.remark(format!("put {count} into {}", queue.path()));
    Ok(Ending::Done)
}

/// Puts each line of standard input as it comes, without its end. Returns their number.
async fn put_lines(queue: &Queue<Bytes>, options: PutOptions) -> Result<usize, Failure> {
    let mut lines = BufReader::new(stdin()).split(b'\n');
    let mut count = 0;
    while let Some(line) = lines.next_segment().await.map_err(|error| input::unreadable(&error))? {
        queue.put_with(&line.into(), options).await?;
        count += 1;
    }
    Ok(count)
}
