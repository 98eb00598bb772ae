use super::arguments::Requeue;
use super::item::ShownItem;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Table, utc};
use bytes::Bytes;
use docent::queue::{DeadLetter, Queue};
use docent::recipe::since_1970_ms;
use serde::Serialize;

/// A dead letter as shown in JSON.
#[derive(Debug, Serialize)]
struct ShownLetter<'a> {
    #[serde(flatten)]
    content: ShownItem<'a>,
    /// Name that the item's node had in the queue.
    item: &'a str,
    since_ms: u64,
    reason: &'a str,
    detail: &'a str,
}

/// Number of requeued items, as shown in JSON.
#[derive(Debug, Serialize)]
struct Requeued<'a> {
    path: &'a str,
    requeued: usize,
}

/// Lists the dead letters.
pub(super) async fn list(app: &App, queue: &Queue<Bytes>) -> Outcome {
    let dead = queue.dead_letters();
    let is_wide = app.output.is_wide();
    let mut table = match is_wide {
        true => Table::new(["NAME", "ITEM", "BYTES", "SINCE", "DELIVERIES", "REASON", "DETAIL"]),
        false => Table::new(["NAME", "SINCE", "DELIVERIES", "REASON", "DETAIL"]),
    };
    for letter in dead.list().await? {
        if app.output.is_json() {
            let value = dead.decode(&letter).unwrap_or_else(|_| letter.data.clone());
            app.output.json(&shown(queue.path(), &letter, &value))?;
        } else {
            let deliveries = letter.deliveries.map_or_else(String::new, |count| count.to_string());
            let mut row = vec![letter.name.clone()];
            if is_wide {
                row.extend([letter.item.clone(), letter.data.len().to_string()]);
            }
            row.extend([utc(letter.since), deliveries, letter.reason.to_string(), letter.detail.clone()]);
            table.row(row);
        }
    }
    if !app.output.is_json() {
        app.output.table(&table)?;
    }
    Ok(Ending::Done)
}

fn shown<'a>(path: &'a str, letter: &'a DeadLetter, value: &Bytes) -> ShownLetter<'a> {
    ShownLetter {
        content: ShownItem::new(path, value).named(&letter.name, letter.deliveries),
        item: &letter.item,
        since_ms: since_1970_ms(letter.since),
        reason: letter.reason.name(),
        detail: &letter.detail,
    }
}

/// Puts dead letters back into the queue.
///
/// # Errors
/// `Other` for a name that is not a dead letter: then nothing is put back.
pub(super) async fn requeue(app: &App, queue: &Queue<Bytes>, arguments: &Requeue) -> Outcome {
    let dead = queue.dead_letters();
    let letters = dead.list().await?;
    let is_known = |name: &&String| letters.iter().any(|letter| letter.name == **name);
    if let Some(name) = arguments.names.iter().find(|name| !is_known(name)) {
        return Err(Failure::other(format!("{} has no dead letter {name:?}", queue.path())));
    }
    let wanted = letters.iter().filter(|letter| arguments.all || arguments.names.contains(&letter.name));
    let mut count = 0_usize;
    for letter in wanted {
        dead.requeue(letter).await?;
        count += 1;
    }
    app.output.remark(format!("put {count} dead letters back into {}", queue.path()));
    if app.output.is_json() {
        app.output.json(&Requeued { path: queue.path(), requeued: count })?;
    }
    Ok(Ending::Done)
}
