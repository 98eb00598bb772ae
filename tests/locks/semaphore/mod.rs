//! The semaphore.

mod batteries;
mod faults;
mod limit;
mod many;
mod neighbours;
mod order;

use docent::Semaphore;
use docent_tests::soon;

/// Waits until there are that many participants.
async fn until_participants(semaphore: &Semaphore, count: usize) {
    soon(async {
        while semaphore.participants().await.unwrap().len() != count {
            docent_tests::pause().await;
        }
    })
    .await;
}
