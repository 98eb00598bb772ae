//! `RwLock` and `InterProcessReadWriteLock`.

use crate::curator::both;
use docent::RwLock;
use docent::locks::AcquireError;
use docent_battery::Backend;
use docent_tests::{soon, until};

const PATH: &str = "/locks/catalogue";
const LOCK: &str = "rw-lock /locks/catalogue";

/// Waits until so many are in the line.
async fn until_waiting(lock: &RwLock, count: usize) {
    until(async || lock.participants().await.unwrap().len() >= count).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn readers_of_both_share_and_a_writer_of_either_excludes_all() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = RwLock::new(&client, PATH).unwrap();
    let (theirs, other) = (curator.make(LOCK).await, curator.make(LOCK).await);

    let our_read = soon(ours.read()).await.unwrap();
    theirs.done("read").await;
    assert!(matches!(soon(ours.try_write()).await, Err(AcquireError::Busy(_))));
    other.refused("try-write").await;

    // A writer of theirs waits for readers of both, and a reader of ours for it.
    let writing = other.tell("write");
    until_waiting(&ours, 3).await;
    let reading = tokio::spawn(ours.read());
    until_waiting(&ours, 4).await;
    soon(our_read.release()).await.unwrap();
    assert!(!writing.is_finished());
    theirs.done("stop-reading").await;
    writing.done().await;
    assert!(!reading.is_finished());
    assert!(matches!(soon(ours.try_read()).await, Err(AcquireError::Busy(_))));
    other.done("stop-writing").await;
    let our_read = soon(reading).await.unwrap().unwrap();

    // And the other way round.
    theirs.done("read").await;
    let writing = tokio::spawn(ours.write());
    until_waiting(&ours, 3).await;
    let reading = other.tell("read");
    until_waiting(&ours, 4).await;
    theirs.done("stop-reading").await;
    assert!(!writing.is_finished());
    soon(our_read.release()).await.unwrap();
    let our_write = soon(writing).await.unwrap().unwrap();
    assert!(!reading.is_finished());
    theirs.refused("try-read").await;
    theirs.refused("try-write").await;
    soon(our_write.release()).await.unwrap();
    reading.done().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_writer_of_either_that_steps_down_lets_the_others_readers_in_and_no_writer() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let ours = RwLock::new(&client, PATH).unwrap();
    let (theirs, other) = (curator.make(LOCK).await, curator.make(LOCK).await);

    let our_write = soon(ours.write()).await.unwrap();
    let reading = theirs.tell("read");
    until_waiting(&ours, 2).await;
    let our_read = soon(our_write.downgrade()).await.unwrap();
    reading.done().await;
    other.refused("try-write").await;
    theirs.done("stop-reading").await;
    other.refused("try-write").await;
    soon(our_read.release()).await.unwrap();

    theirs.done("write").await;
    let reading = tokio::spawn(ours.read());
    until_waiting(&ours, 2).await;
    // It reads while it writes, and then reads only. With Curator 5.4 its reader is last in the line, so that
    // a writer of anybody's which waits already does not wait for it; newer ones give it the writer's place,
    // as ours has it.
    theirs.done("read").await;
    assert!(!reading.is_finished());
    theirs.done("stop-writing").await;
    let our_read = soon(reading).await.unwrap().unwrap();
    assert!(matches!(soon(ours.try_write()).await, Err(AcquireError::Busy(_))));
    soon(our_read.release()).await.unwrap();
    assert!(matches!(soon(ours.try_write()).await, Err(AcquireError::Busy(_))));
    theirs.done("stop-reading").await;
    soon(soon(ours.try_write()).await.unwrap().release()).await.unwrap();
}
