//! Holds a lock in a separate process that tests freeze: `holder CONNECT-STRING NAMESPACE TIMEOUT-MS TICK-MS
//! LOCK KIND`.
//!
//! Prints `held` once it holds the lock. Then prints, for each line it reads, what its guard reports: `held`
//! or `lost`.

use docent::locks::SharedMutex;
use docent::{MultiLock, Mutex, RwLock, Semaphore};
use docent_tests::contenders;
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (client, [lock, kind]) = contenders::in_process().await?;
    let lock = lock.as_str();
    let is_held: Box<dyn Fn() -> bool> = match kind.as_str() {
        "mutex" => {
            let guard = Mutex::new(&client, lock)?.acquire().await?;
            Box::new(move || guard.is_held())
        }
        "shared" => {
            let guard = SharedMutex::builder(&client, lock).limit(3).build()?.acquire().await?;
            Box::new(move || guard.is_held())
        }
        "read" => {
            let guard = RwLock::new(&client, lock)?.read().await?;
            Box::new(move || guard.is_held())
        }
        "write" => {
            let guard = RwLock::new(&client, lock)?.write().await?;
            Box::new(move || guard.is_held())
        }
        "downgraded" => {
            let guard = RwLock::new(&client, lock)?.write().await?.downgrade().await?;
            Box::new(move || guard.is_held())
        }
        "permit" => {
            let permit = Semaphore::new(&client, lock, 1)?.acquire().await?;
            Box::new(move || permit.is_held())
        }
        "permits" => {
            let permits = Semaphore::new(&client, lock, 2)?.acquire_many(2).await?;
            Box::new(move || permits.is_held())
        }
        "multi" => {
            let read = RwLock::new(&client, "/lock-to-read")?.reading();
            let guard = MultiLock::new([Mutex::new(&client, lock)?.into(), read])?.acquire().await?;
            Box::new(move || guard.is_held())
        }
        kind => return Err(format!("unknown kind of lock {kind:?}").into()),
    };
    Ok(contenders::answer(is_held).await?)
}
