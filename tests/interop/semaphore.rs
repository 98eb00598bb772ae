//! `Semaphore` and `InterProcessSemaphoreV2`.

use crate::curator::both;
use docent::Semaphore;
use docent::locks::{AcquireError, SharedLimit};
use docent_battery::Backend;
use docent_tests::{soon, until};

/// Waits until `count` permits are held or requested.
async fn until_wanted(semaphore: &Semaphore, count: usize) {
    until(async || semaphore.participants().await.unwrap().len() >= count).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn permits_and_leases_are_counted_together_up_to_one_limit() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = Semaphore::new(&client, "/limits/exports", 3).unwrap();
    let (peer, other) = (
        curator.make("semaphore /limits/exports 3").await,
        curator.make("semaphore /limits/exports 3").await,
    );

    let (first, second) = (soon(own.acquire()).await.unwrap(), soon(own.acquire()).await.unwrap());
    peer.done("acquire 1").await;
    assert_eq!(peer.done("participants").await.len(), 3);
    let participants = soon(own.participants()).await.unwrap();
    assert!(participants.len() == 3 && participants.iter().all(|one| one.holds), "{participants:?}");
    other.refused("try").await;
    assert!(matches!(soon(own.try_acquire()).await, Err(AcquireError::Busy(_))));

    // Curator's client is next, and Docent's waits behind it.
    let leasing = other.start("acquire 1");
    until_wanted(&own, 4).await;
    let acquiring = tokio::spawn(own.acquire());
    until_wanted(&own, 5).await;
    assert!(!leasing.is_finished());
    soon(first.release()).await.unwrap();
    leasing.done().await;
    assert!(!acquiring.is_finished());
    peer.done("release").await;
    let third = soon(acquiring).await.unwrap().unwrap();

    // The reverse. Docent's client requests two permits, and freed permits are reserved for it.
    let acquiring = tokio::spawn(own.acquire_many(2));
    until_wanted(&own, 5).await;
    let leasing = peer.start("acquire 1");
    until_wanted(&own, 6).await;
    other.done("release").await;
    assert!(!acquiring.is_finished());
    soon(second.release()).await.unwrap();
    let _both = soon(acquiring).await.unwrap().unwrap();
    assert!(!leasing.is_finished());
    soon(third.release()).await.unwrap();
    leasing.done().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_limit_that_is_shared_is_raised_by_either_for_both() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let peer = curator.make("shared-semaphore /limits/imports /limits/number 1").await;
    let number = curator.make("count /limits/number 5").await;
    assert_eq!(number.done("get").await, ["1"]);
    let limit = SharedLimit::new(&client, "/limits/number", 7).unwrap();
    assert_eq!(soon(limit.get()).await.unwrap(), 1);
    let own = Semaphore::with_limit(&client, "/limits/imports", &limit).unwrap();

    let _permit = soon(own.acquire()).await.unwrap();
    let leasing = peer.start("acquire 1");
    until_wanted(&own, 2).await;
    assert!(!leasing.is_finished());
    soon(limit.set(2)).await.unwrap();
    leasing.done().await;

    let acquiring = tokio::spawn(own.acquire());
    until_wanted(&own, 3).await;
    assert!(!acquiring.is_finished());
    number.done("set 3").await;
    let _other = soon(acquiring).await.unwrap().unwrap();
}
