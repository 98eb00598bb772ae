//! The stock in SQLite, which refuses writers that have lost their lock to a later holder.

use docent::Fence;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The table `fences` contains the highest fence that has written to a resource.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE IF NOT EXISTS fences (resource TEXT PRIMARY KEY, fence INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, level INTEGER NOT NULL CHECK (level >= 0)) STRICT;
    CREATE TABLE IF NOT EXISTS orders (
        id TEXT PRIMARY KEY, item TEXT NOT NULL, quantity INTEGER NOT NULL, copy TEXT NOT NULL
    ) STRICT;";

/// Records a fence: changes one row, or none if a higher fence has written.
const ENTER: &str = "
    INSERT INTO fences (resource, fence) VALUES (?1, ?2)
    ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence WHERE fences.fence <= excluded.fence";

/// An order to book, and the copy that books it.
#[derive(Debug, Clone)]
pub struct Booking {
    /// Id chosen by the caller: an order that is sent again is booked once.
    pub id: String,
    /// Name of the item.
    pub item: String,
    /// Ordered quantity of the item.
    pub quantity: u32,
    /// Name of the copy.
    pub copy: String,
}

/// Error of the stock.
#[derive(Debug, thiserror::Error)]
pub enum StockError {
    /// A holder with a higher fence has written since, so the lock has passed on.
    #[error("fence {0} is lower than the fence of an earlier write")]
    Stale(Fence),
    /// The stock of the item is too low.
    #[error("sold out")]
    SoldOut,
    /// The database failed.
    #[error("the database failed")]
    Database(#[from] rusqlite::Error),
}

/// The database. Copies of the shop share its file.
#[derive(Debug, Clone)]
pub struct Stock(Arc<Mutex<Connection>>);

impl Stock {
    /// Opens the database, and creates missing tables.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StockError> {
        let database = Connection::open(path)?;
        database.execute_batch(SCHEMA)?;
        Ok(Self(Arc::new(Mutex::new(database))))
    }

    /// Returns the level of an item.
    ///
    /// # Errors
    /// [`StockError::Database`].
    pub async fn level(&self, item: &str) -> Result<u32, StockError> {
        let item = item.to_owned();
        self.blocking(move |database| {
            let mut query = database.prepare_cached("SELECT level FROM stock WHERE item = ?1")?;
            Ok(query.query_row([item], |row| row.get(0)).optional()?.unwrap_or(0))
        })
        .await
    }

    /// Books an order under the lock of `resource`. Returns false if the order was booked before.
    ///
    /// # Errors
    /// [`StockError`].
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the order may be booked nevertheless, unless its fence is outdated.
    pub async fn book(&self, resource: &str, fence: Fence, order: Booking) -> Result<bool, StockError> {
        self.write(resource, fence, move |transaction| {
            let Booking { id, item, quantity, copy } = order;
            let new = "INSERT INTO orders (id, item, quantity, copy) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
            if transaction.execute(new, params![id, item, quantity, copy])? == 0 {
                return Ok(false);
            }
            let take = "UPDATE stock SET level = level - ?2 WHERE item = ?1 AND level >= ?2";
            match transaction.execute(take, params![item, quantity])? {
                0 => Err(StockError::SoldOut),
                _ => Ok(true),
            }
        })
        .await
    }

    /// Fills an item up to a level under the lock of `resource`.
    ///
    /// # Errors
    /// [`StockError`].
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the item may be filled up nevertheless, unless its fence is
    /// outdated.
    pub async fn fill(&self, resource: &str, fence: Fence, item: &str, to: u32) -> Result<(), StockError> {
        let item = item.to_owned();
        self.write(resource, fence, move |transaction| {
            let fill = "INSERT INTO stock (item, level) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET level = ?2";
            transaction.execute(fill, params![item, to])?;
            Ok(())
        })
        .await
    }

    /// Returns the names of the copies that booked an order, one entry for each booking: never more than one.
    ///
    /// # Errors
    /// [`StockError::Database`].
    pub async fn booked(&self, id: &str) -> Result<Vec<String>, StockError> {
        let id = id.to_owned();
        self.blocking(move |database| {
            let mut query = database.prepare_cached("SELECT copy FROM orders WHERE id = ?1")?;
            Ok(query.query_map([id], |row| row.get(0))?.collect::<Result<_, _>>()?)
        })
        .await
    }

    /// Records the fence and applies the writes in one transaction: either both or neither.
    async fn write<T: Send + 'static>(
        &self,
        resource: &str,
        fence: Fence,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, StockError> + Send + 'static,
    ) -> Result<T, StockError> {
        let resource = resource.to_owned();
        self.blocking(move |database| {
            let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if transaction.execute(ENTER, params![resource, fence.as_i64()])? == 0 {
                return Err(StockError::Stale(fence));
            }
            let written = write(&transaction)?;
            transaction.commit()?;
            Ok(written)
        })
        .await
    }

    /// Runs `work` outside the runtime's threads, because SQLite waits for disks and other processes.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, StockError> + Send + 'static,
    ) -> Result<T, StockError> {
        let database = Arc::clone(&self.0);
        let work = move || work(&mut database.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(work).await.expect("the work neither panics nor is aborted")
    }
}
