use super::item::{ShownItem, print};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use bytes::Bytes;
use docent::queue::Queue;
use serde::Serialize;

#[derive(Debug, Serialize)]
struct Length<'a> {
    path: &'a str,
    depth: usize,
}

/// Prints the item that would be delivered next.
pub(super) async fn peek(app: &App, queue: &Queue<Bytes>) -> Outcome {
    let item = queue.peek().await?;
    let item =
        item.ok_or_else(|| Failure::other(format!("{} has no item that is free to take", queue.path())))?;
    print(&app.output, &item, &ShownItem::new(queue.path(), &item))?;
    Ok(Ending::Done)
}

/// Prints the number of items.
pub(super) async fn len(app: &App, queue: &Queue<Bytes>) -> Outcome {
    let depth = queue.len().await?;
    if app.output.is_json() {
        app.output.json(&Length { path: queue.path(), depth })?;
    } else {
        app.output.line(depth.to_string())?;
    }
    Ok(Ending::Done)
}
