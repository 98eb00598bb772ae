//! `RwLock` and `InterProcessReadWriteLock`.

use crate::curator::both;
use docent::RwLock;
use docent::locks::AcquireError;
use docent_battery::Backend;
use docent_tests::{soon, until};

const PATH: &str = "/locks/catalogue";
const LOCK: &str = "rw-lock /locks/catalogue";

/// Waits until the line has `count` contenders.
async fn until_waiting(lock: &RwLock, count: usize) {
    until(async || lock.participants().await.unwrap().len() >= count).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn readers_of_both_share_and_a_writer_of_either_excludes_all() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = RwLock::new(&client, PATH).unwrap();
    let (peer, other) = (curator.make(LOCK).await, curator.make(LOCK).await);

    let our_read = soon(own.read()).await.unwrap();
    peer.done("read").await;
    assert!(matches!(soon(own.try_write()).await, Err(AcquireError::Busy(_))));
    other.refused("try-write").await;

    // Curator's writer waits for readers of both libraries, and Docent's reader waits for this writer.
    let writing = other.start("write");
    until_waiting(&own, 3).await;
    let reading = tokio::spawn(own.read());
    until_waiting(&own, 4).await;
    soon(our_read.release()).await.unwrap();
    assert!(!writing.is_finished());
    peer.done("stop-reading").await;
    writing.done().await;
    assert!(!reading.is_finished());
    assert!(matches!(soon(own.try_read()).await, Err(AcquireError::Busy(_))));
    other.done("stop-writing").await;
    let our_read = soon(reading).await.unwrap().unwrap();

    // The reverse: Docent's writer and Curator's reader.
    peer.done("read").await;
    let writing = tokio::spawn(own.write());
    until_waiting(&own, 3).await;
    let reading = other.start("read");
    until_waiting(&own, 4).await;
    peer.done("stop-reading").await;
    assert!(!writing.is_finished());
    soon(our_read.release()).await.unwrap();
    let our_write = soon(writing).await.unwrap().unwrap();
    assert!(!reading.is_finished());
    peer.refused("try-read").await;
    peer.refused("try-write").await;
    soon(our_write.release()).await.unwrap();
    reading.done().await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper and Curator: run `cargo xtask test`"]
async fn a_writer_of_either_that_steps_down_admits_the_readers_of_the_other_and_no_writer() {
    let server = Backend::Real.start().await;
    let (client, curator) = both(&server).await;
    let own = RwLock::new(&client, PATH).unwrap();
    let (peer, other) = (curator.make(LOCK).await, curator.make(LOCK).await);

    let our_write = soon(own.write()).await.unwrap();
    let reading = peer.start("read");
    until_waiting(&own, 2).await;
    let our_read = soon(our_write.downgrade()).await.unwrap();
    reading.done().await;
    other.refused("try-write").await;
    peer.done("stop-reading").await;
    other.refused("try-write").await;
    soon(our_read.release()).await.unwrap();

    peer.done("write").await;
    let reading = tokio::spawn(own.read());
    until_waiting(&own, 2).await;
    // The Curator client reads while it writes, and then only reads. In Curator 5.4 its reader is last in the
    // line, so a writer that already waits does not wait for this reader. Newer versions give the reader the
    // writer's place, as Docent does.
    peer.done("read").await;
    assert!(!reading.is_finished());
    peer.done("stop-writing").await;
    let our_read = soon(reading).await.unwrap().unwrap();
    assert!(matches!(soon(own.try_write()).await, Err(AcquireError::Busy(_))));
    soon(our_read.release()).await.unwrap();
    assert!(matches!(soon(own.try_write()).await, Err(AcquireError::Busy(_))));
    peer.done("stop-reading").await;
    soon(soon(own.try_write()).await.unwrap().release()).await.unwrap();
}
