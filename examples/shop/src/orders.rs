//! An order: charged and booked under the lock of its item.

use crate::service::Shop;
use crate::stock::{Booking, StockError};
use docent::locks::AcquireError;
use docent::{Error, Fence, Lost, Mutex};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::time::sleep;

/// Longest wait for the lock. Callers get an answer while they still listen.
const PATIENCE: Duration = Duration::from_secs(2);

/// Body of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Name of the item.
    pub item: String,
    /// How many of it.
    pub quantity: u32,
}

/// Answer to an order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    /// The order.
    pub id: String,
    /// Name of the copy that took it.
    pub copy: String,
    /// False when it was booked before.
    pub is_new: bool,
    /// Fence under which it was booked.
    pub fence: u64,
}

/// Errors of an order.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The policy allows so many.
    #[error("at most {0} in one order")]
    TooMany(u32),
    /// The lock was not had.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The lock was lost on the way.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The stock refused.
    #[error(transparent)]
    Stock(#[from] StockError),
}

impl From<Error> for OrderError {
    fn from(error: Error) -> Self {
        Self::Acquire(error.into())
    }
}

/// The lock around all writes to an item. A charge cannot be rolled back with a database's transaction, so
/// that one lock goes around both.
///
/// # Errors
/// When the item's name is none for a node.
pub fn lock_of(shop: &Shop, item: &str) -> Result<Mutex, Error> {
    Mutex::new(&shop.client, &format!("/locks/{item}"))
}

/// Charges and books an order.
///
/// # Errors
/// [`OrderError`]. After [`OrderError::Lost`] it may be charged; sent again under the same id it is not
/// booked twice.
pub async fn place(shop: &Shop, id: &str, order: &Order) -> Result<Receipt, OrderError> {
    let most = shop.policy.current().most_per_order;
    if order.quantity > most {
        return Err(OrderError::TooMany(most));
    }
    let lock = lock_of(shop, &order.item)?;
    let guard = lock.acquire_timeout(PATIENCE).await?;
    // Dropped as soon as the lock is lost. A write that is under way in the database by then goes on: it is
    // there that the fence decides.
    let work = charge_and_book(shop, lock.path(), guard.fence(), id, order);
    let is_new = guard.run(work).await??;
    let receipt = Receipt { id: id.into(), copy: shop.name.clone(), is_new, fence: guard.fence().as_u64() };
    // The order is booked, whatever becomes of the release: it goes on in the background.
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
    // Stands for a request to whoever charges cards, which takes the id, too.
    sleep(Duration::from_millis(shop.policy.current().charge_ms)).await;
    let Order { item, quantity } = order.clone();
    let booking = Booking { id: id.to_owned(), item, quantity, copy: shop.name.clone() };
    shop.stock.book(lock, fence, booking).await
}
