//! The read/write lock.

mod batteries;
mod downgrade;
mod neighbours;
mod order;
mod races;
mod reentry;
mod wake;

use docent::RwLock;
use docent_tests::soon;

/// Waits until that many tickets are in the line.
pub(crate) async fn until_in_line(lock: &RwLock, count: usize) {
    soon(async {
        while lock.participants().await.unwrap().len() != count {
            docent_tests::pause().await;
        }
    })
    .await;
}
