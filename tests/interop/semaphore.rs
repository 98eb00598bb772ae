//! `Semaphore` and `InterProcessSemaphoreV2`.

use crate::curator::both;
use docent::Semaphore;
use docent::locks::{AcquireError, SharedLimit};
use docent_battery::Backend;
use docent_tests::{soon, until};

/// Waits until so many permits are held or wanted.
async fn until_wanted(semaphore: &Semaphore, count: usize) {
    until(async || semaphore.participants().await.unwrap().len() >= count).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn permits_and_leases_are_counted_together_up_to_one_limit() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = Semaphore::new(&client, "/limits/exports", 3).unwrap();
    let (theirs, other) = (
        curator.make("semaphore /limits/exports 3").await,
        curator.make("semaphore /limits/exports 3").await,
    );

    let (first, second) = (soon(ours.acquire()).await.unwrap(), soon(ours.acquire()).await.unwrap());
    theirs.done("acquire 1").await;
    assert_eq!(theirs.done("participants").await.len(), 3);
    let participants = soon(ours.participants()).await.unwrap();
    assert!(participants.len() == 3 && participants.iter().all(|one| one.holds), "{participants:?}");
    other.refused("try").await;
    assert!(matches!(soon(ours.try_acquire()).await, Err(AcquireError::Busy(_))));

    // Theirs has its turn, and ours waits for that.
    let leasing = other.tell("acquire 1");
    until_wanted(&ours, 4).await;
    let acquiring = tokio::spawn(ours.acquire());
    until_wanted(&ours, 5).await;
    assert!(!leasing.is_finished());
    soon(first.release()).await.unwrap();
    leasing.done().await;
    assert!(!acquiring.is_finished());
    theirs.done("release").await;
    let third = soon(acquiring).await.unwrap().unwrap();

    // And the other way round. Ours wants two, and what comes free is kept for it.
    let acquiring = tokio::spawn(ours.acquire_many(2));
    until_wanted(&ours, 5).await;
    let leasing = theirs.tell("acquire 1");
    until_wanted(&ours, 6).await;
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
    let theirs = curator.make("shared-semaphore /limits/imports /limits/number 1").await;
    let number = curator.make("count /limits/number 5").await;
    assert_eq!(number.done("get").await, ["1"]);
    let limit = SharedLimit::new(&client, "/limits/number", 7).unwrap();
    assert_eq!(soon(limit.get()).await.unwrap(), 1);
    let ours = Semaphore::with_limit(&client, "/limits/imports", &limit).unwrap();

    let _permit = soon(ours.acquire()).await.unwrap();
    let leasing = theirs.tell("acquire 1");
    until_wanted(&ours, 2).await;
    assert!(!leasing.is_finished());
    soon(limit.set(2)).await.unwrap();
    leasing.done().await;

    let acquiring = tokio::spawn(ours.acquire());
    until_wanted(&ours, 3).await;
    assert!(!acquiring.is_finished());
    number.done("set 3").await;
    let _other = soon(acquiring).await.unwrap().unwrap();
}
