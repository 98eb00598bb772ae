use super::item::{ShownItem, print};
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use bytes::Bytes;
use docent::queue::Queue;
use serde::Serialize;

#[derive(Debug, Serialize)]
struct Length {
    items: usize,
}

/// Prints the item that would be delivered next.
pub(super) async fn peek(app: &App, queue: &Queue<Bytes>) -> Outcome {
    let item = queue.peek().await?;
    let item =
        item.ok_or_else(|| Failure::other(format!("{} has no item that is free to take", queue.path())))?;
    print(&app.output, &item, &ShownItem::new(&item))?;
    Ok(Ending::Done)
}

/// Prints the number of items.
pub(super) async fn len(app: &App, queue: &Queue<Bytes>) -> Outcome {
    let items = queue.len().await?;
    if app.output.is_json() {
        app.output.json(&Length { items })?;
    } else {
        app.output.line(items.to_string())?;
    }
    Ok(Ending::Done)
}
