//! The leader's job: fills up the stock before it runs out.

use crate::orders::lock_of;
use crate::service::Shop;
use docent::{Client, Election, Error, Leadership};
use std::time::Duration;
use tokio::time::sleep;

/// Item that never runs out.
pub const ITEM: &str = "tea";

/// Time between two checks by the leader.
const PERIOD: Duration = Duration::from_millis(500);

/// Returns the election that determines which copy restocks.
///
/// # Errors
/// If the name is empty.
pub fn election(client: &Client, name: &str) -> Result<Election, Error> {
    Election::builder(client, "/election/restock").id(name).build()
}

/// Does the work of one term. The future is dropped when the leadership is lost, and created again in the
/// next term.
///
/// # Errors
/// None: errors are logged, because the next check may succeed, and an error here would end the run.
pub async fn work(shop: &Shop, leadership: Leadership) -> anyhow::Result<()> {
    tracing::info!(fence = %leadership.fence(), "elected as the leader; restocking");
    loop {
        if let Err(error) = check(shop).await {
            tracing::warn!(%error, "cannot restock; trying again at the next check");
        }
        sleep(PERIOD).await;
    }
}

/// Checks the level and fills up the stock. The election only saves the other copies this work; the item's
/// lock keeps two writers apart.
async fn check(shop: &Shop) -> anyhow::Result<()> {
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
