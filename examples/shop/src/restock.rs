//! The leader's job: fills up the stock before it runs out.

use crate::orders::lock_of;
use crate::service::Shop;
use docent::{Client, Election, Error, Leadership};
use std::time::Duration;
use tokio::time::sleep;

/// The item that never runs out.
pub const ITEM: &str = "tea";

/// How often the leader looks.
const PERIOD: Duration = Duration::from_millis(500);

/// The election of who restocks.
///
/// # Errors
/// When the name is none for a node.
pub fn election(client: &Client, name: &str) -> Result<Election, Error> {
    Election::builder(client, "/election/restock").id(name).build()
}

/// The work of one term. It is dropped when the leadership is lost, and called again in the next term.
///
/// # Errors
/// None that the next look might not mend: those are logged. An error here would end the run.
pub async fn work(shop: &Shop, leadership: Leadership) -> anyhow::Result<()> {
    tracing::info!(fence = %leadership.fence(), "restocks from now on");
    loop {
        if let Err(error) = look(shop).await {
            tracing::warn!(%error, "cannot restock now");
        }
        sleep(PERIOD).await;
    }
}

/// Leading says who looks, and saves the others the work. Two writers are kept apart by the item's lock.
async fn look(shop: &Shop) -> anyhow::Result<()> {
    let full = shop.policy.current().restock_to;
    if shop.stock.level(ITEM).await? > full / 2 {
        return Ok(());
    }
    let lock = lock_of(shop, ITEM)?;
    let guard = lock.acquire().await?;
    guard.run(shop.stock.fill(lock.path(), guard.fence(), ITEM, full)).await??;
    tracing::info!(item = ITEM, level = full, "restocked");
    guard.release().await?;
    Ok(())
}
