//! An order: charged and booked under the lock of its item.

use crate::service::Shop;
use crate::stock::{Booking, StockError};
use docent::locks::AcquireError;
use docent::{Error, Fence, Lost, Mutex};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::sleep;

/// Maximum wait for the lock, so that callers get an answer before their own timeout.
const PATIENCE: Duration = Duration::from_secs(2);

/// Body of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Name of the item.
    pub item: String,
    /// Ordered quantity of the item.
    pub quantity: u32,
}

/// Answer to an order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// Id of the order.
    pub id: String,
    /// Name of the copy that took the order.
    pub copy: String,
    /// Whether the order was booked by this request; false if it had been booked before.
    pub is_new: bool,
    /// Fence under which the order was booked.
    pub fence: u64,
}

/// Error of an order.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The quantity exceeds the policy's limit.
    #[error("an order may contain at most {0}")]
    TooMany(u32),
    /// The lock could not be acquired.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lock was lost meanwhile.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The stock refused the order.
    #[error(transparent)]
    Stock(#[from] StockError),
}

impl From<Error> for OrderError {
    fn from(error: Error) -> Self {
        Self::Acquire(error.into())
    }
}

/// Returns the lock around all writes to an item. A charge cannot be rolled back with a database's
/// transaction, so one lock covers both.
///
/// # Errors
/// If the item's name is not a valid name of a node.
pub fn lock_of(shop: &Shop, item: &str) -> Result<Mutex, Error> {
    Mutex::new(&shop.client, &format!("/locks/{item}"))
}

/// Charges and books an order.
///
/// # Errors
/// [`OrderError`]. After [`OrderError::Lost`] the order may have been charged; if it is sent again with the
/// same id, it is not booked twice.
pub async fn place(shop: &Shop, id: &str, order: &Order) -> Result<Receipt, OrderError> {
    let most = shop.policy.current().most_per_order;
    if order.quantity > most {
        return Err(OrderError::TooMany(most));
    }
    let lock = lock_of(shop, &order.item)?;
    let guard = lock.acquire_timeout(PATIENCE).await?;
    // Dropped as soon as the lock is lost. A write that is already running in the database continues; there
    // the fence decides.
    let work = charge_and_book(shop, lock.path(), guard.fence(), id, order);
    let is_new = guard.run(work).await??;
    let receipt = Receipt { id: id.into(), copy: shop.name.clone(), is_new, fence: guard.fence().as_u64() };
    // The order is booked, whatever the outcome of the release, which continues in the background.
    drop(guard);
    Ok(receipt)
}

async fn charge_and_book(
    shop: &Shop,
    lock: &str,
    fence: Fence,
    id: &str,
    order: &Order,
) -> Result<bool, StockError> {
    // Simulates a request to a payment provider, which also receives the id.
    sleep(Duration::from_millis(shop.policy.current().charge_ms)).await;
    let Order { item, quantity } = order.clone();
    let booking = Booking { id: id.to_owned(), item, quantity, copy: shop.name.clone() };
    shop.stock.book(lock, fence, booking).await
}
