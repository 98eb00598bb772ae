use super::records::Put;
use super::version::Version;
use super::workload::{QueueWorkload, Stock};
use crate::workload::ClientCtx;
use crate::workload::abandon::abandon_at;
use bytes::Bytes;
use docent::Queue;
use docent::queue::{PutError, Raw};
use fastrand::Rng;
use std::future::Future;
use std::ops::ControlFlow;
use tokio::time::timeout;

/// Maximum number of items that are put together.
const MOST: usize = 5;

/// Puts one item, several items together, or one that no consumer can decode. Breaks if the client is closed.
pub(super) async fn put(
    work: &QueueWorkload,
    ctx: &ClientCtx,
    stock: &Stock,
    queue: &Queue<u64>,
    version: Version,
    rng: &mut Rng,
) -> ControlFlow<()> {
    match rng.u8(..12) {
        0 if stock.corrupt => {
            let item = work.item(version);
            let Ok(raw) = stock.settings::<Bytes>(&ctx.client, Raw).build() else {
                return ControlFlow::Break(());
            };
            let bytes = Bytes::from(format!("corrupt {item}"));
            record_put(ctx, stock, &[item], raw.put(&bytes), rng).await
        }
        0..=3 => {
            let items: Vec<u64> = (0..rng.usize(1..=MOST)).map(|_| work.item(version)).collect();
            let put = queue.put_all_with(&items, stock.place(rng));
            record_put(ctx, stock, &items, put, rng).await
        }
        _ => {
            let item = work.item(version);
            let put = queue.put_with(&item, stock.place(rng));
            record_put(ctx, stock, &[item], put, rng).await
        }
    }
}

async fn record_put(
    ctx: &ClientCtx,
    stock: &Stock,
    items: &[u64],
    put: impl Future<Output = Result<(), PutError>>,
    rng: &mut Rng,
) -> ControlFlow<()> {
    let diary = Put::begin(ctx, &stock.path, items);
    let done = match rng.u8(..8) {
        0 => abandon_at(rng.u32(1..10), put).await,
        1 => timeout(ctx.setting.span(rng), put).await.ok(),
        _ => Some(put.await),
    };
    // The outcome of a cancelled put is unknown.
    let Some(done) = done else { return ControlFlow::Continue(()) };
    match done {
        Ok(()) => diary.ended(Some(true)),
        Err(PutError::Core(error)) => {
            diary.ended((!error.may_have_applied()).then_some(false));
            return ctx.failed(&error);
        }
        Err(_) => diary.ended(Some(false)),
    }
    ControlFlow::Continue(())
}
