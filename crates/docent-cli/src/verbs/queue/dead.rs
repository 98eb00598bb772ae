use super::arguments::Requeue;
use super::item::ShownItem;
use crate::app::App;
use crate::exit::{Ending, Failure, Outcome};
use crate::output::{Table, utc};
use bytes::Bytes;
use docent::queue::{DeadLetter, Queue};
use serde::Serialize;

/// A dead letter as shown in JSON.
#[derive(Debug, Serialize)]
struct ShownLetter<'a> {
    reason: String,
    detail: &'a str,
    since: String,
    #[serde(flatten)]
    item: ShownItem<'a>,
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
    let mut table = Table::new(["NAME", "SINCE", "DELIVERIES", "REASON", "DETAIL"]);
    for letter in dead.list().await? {
        if app.output.is_json() {
            let item = dead.decode(&letter).unwrap_or_else(|_| letter.data.clone());
            app.output.json(&shown(&letter, &item))?;
        } else {
            let deliveries = letter.deliveries.map_or_else(String::new, |count| count.to_string());
            table.row([
                &letter.name,
                &utc(letter.since),
                &deliveries,
                &letter.reason.to_string(),
                &letter.detail,
            ]);
        }
    }
    if !app.output.is_json() {
        app.output.table(&table)?;
    }
    Ok(Ending::Done)
}

fn shown<'a>(letter: &'a DeadLetter, item: &'a [u8]) -> ShownLetter<'a> {
    let item = ShownItem::new(item).named(&letter.name, letter.deliveries);
    ShownLetter { reason: letter.reason.to_string(), detail: &letter.detail, since: utc(letter.since), item }
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
