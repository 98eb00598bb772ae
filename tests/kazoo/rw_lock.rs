//! `RwLock`, and `ReadLock` and `WriteLock`, each told of the others.

use crate::beside_kazoo;
use crate::client::{Kazoo, both, expire};
use docent::locks::AcquireError;
use docent::{Client, LostReason, RwLock};
use docent_battery::Backend;
use docent_tests::{soon, until};

const PATH: &str = "/locks/catalogue";
const READ: &str = "read-lock /locks/catalogue reader __WRIT__";
const WRITE: &str = "write-lock /locks/catalogue writer __WRIT__ __READ__";

fn lock(client: &Client) -> RwLock {
    let ours = RwLock::builder(client, PATH).neighbour_writers("__lock__").neighbour_readers("__rlock__");
    ours.build().unwrap()
}

/// Waits until so many are in the line.
async fn until_waiting(lock: &RwLock, count: usize) {
    until(async || lock.participants().await.unwrap().len() >= count).await;
}

/// The path of the last in the line.
async fn last(lock: &RwLock) -> String {
    let line = soon(lock.participants()).await.unwrap();
    format!("{PATH}/{}", line.last().unwrap().name)
}

beside_kazoo! {
    async fn readers_of_both_share_and_a_writer_of_either_excludes_all(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = lock(&client);
        let (reader, writer) = (kazoo.make(READ).await, kazoo.make(WRITE).await);

        let our_read = soon(ours.read()).await.unwrap();
        reader.done("acquire").await;
        assert!(matches!(soon(ours.try_write()).await, Err(AcquireError::Busy(_))));
        writer.refused("try").await;

        // A writer of theirs waits for readers of both, and a reader of ours for it.
        let their_read = last(&ours).await;
        let writing = writer.tell("acquire");
        kazoo.until_it_waits_for(&their_read).await;
        let reading = tokio::spawn(ours.read());
        until_waiting(&ours, 4).await;
        reader.done("release").await;
        kazoo.until_it_waits_for(&our_read.path()).await;
        assert!(!writing.is_finished());
        soon(our_read.release()).await.unwrap();
        writing.done().await;
        assert!(!reading.is_finished());
        assert!(matches!(soon(ours.try_read()).await, Err(AcquireError::Busy(_))));
        assert!(matches!(soon(ours.try_write()).await, Err(AcquireError::Busy(_))));
        writer.done("release").await;
        let our_read = soon(reading).await.unwrap().unwrap();

        // And the other way round.
        reader.done("acquire").await;
        let writing = tokio::spawn(ours.write());
        until_waiting(&ours, 3).await;
        let waiting_write = last(&ours).await;
        let late = kazoo.make(READ).await;
        let reading = late.tell("acquire");
        kazoo.until_it_waits_for(&waiting_write).await;
        reader.done("release").await;
        assert!(!writing.is_finished());
        soon(our_read.release()).await.unwrap();
        let our_write = soon(writing).await.unwrap().unwrap();
        assert!(!reading.is_finished());
        reader.refused("try").await;
        writer.refused("try").await;
        soon(our_write.release()).await.unwrap();
        reading.done().await;
    }

    async fn a_writer_of_ours_that_steps_down_lets_kazoos_readers_in_and_no_writer(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = lock(&client);
        let (reader, late) = (kazoo.make(READ).await, kazoo.make(READ).await);
        let (writer, other) = (kazoo.make(WRITE).await, kazoo.make(WRITE).await);

        // A reader and a writer of theirs wait while it steps down, and a reader behind that writer.
        let our_write = soon(ours.write()).await.unwrap();
        let reading = reader.tell("acquire");
        kazoo.until_it_waits_for(&our_write.path()).await;
        let their_read = last(&ours).await;
        let writing = writer.tell("acquire");
        kazoo.until_it_waits_for(&their_read).await;
        let their_write = last(&ours).await;
        let reading_late = late.tell("acquire");
        kazoo.until_it_waits_for(&their_write).await;
        let our_read = soon(our_write.downgrade()).await.unwrap();
        reading.done().await;
        reader.done("release").await;
        kazoo.until_it_waits_for(&our_read.path()).await;
        assert!(!writing.is_finished() && !reading_late.is_finished());
        soon(our_read.release()).await.unwrap();
        writing.done().await;
        assert!(!reading_late.is_finished());
        writer.done("release").await;
        reading_late.done().await;
        late.done("release").await;

        // A writer of theirs is next in line, and comes between at no time.
        let our_write = soon(ours.write()).await.unwrap();
        let writing = writer.tell("acquire");
        kazoo.until_it_waits_for(&our_write.path()).await;
        let our_read = soon(our_write.downgrade()).await.unwrap();
        kazoo.until_it_waits_for(&our_read.path()).await;
        assert!(!writing.is_finished());
        other.refused("try").await;
        soon(our_read.release()).await.unwrap();
        writing.done().await;
    }

    async fn the_side_of_either_is_the_others_when_its_session_ends(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let ours = lock(&client);
        kazoo.make(READ).await.done("acquire").await;
        let writing = tokio::spawn(ours.write());
        until_waiting(&ours, 2).await;
        assert!(matches!(soon(ours.try_write()).await, Err(AcquireError::Busy(_))));
        kazoo.expire().await;
        soon(soon(writing).await.unwrap().unwrap().release()).await.unwrap();

        let kazoo = Kazoo::start(&server).await;
        kazoo.make(WRITE).await.done("acquire").await;
        let reading = tokio::spawn(ours.read());
        until_waiting(&ours, 2).await;
        assert!(matches!(soon(ours.try_read()).await, Err(AcquireError::Busy(_))));
        kazoo.expire().await;
        let our_read = soon(reading).await.unwrap().unwrap();

        let kazoo = Kazoo::start(&server).await;
        let (reader, writer) = (kazoo.make(READ).await, kazoo.make(WRITE).await);
        let writing = writer.tell("acquire");
        kazoo.until_it_waits_for(&our_read.path()).await;
        assert!(!writing.is_finished());
        expire(&server, &client).await;
        writing.done().await;
        assert_eq!(soon(our_read.lost()).await, LostReason::SessionExpired);

        let writing = tokio::spawn(ours.write());
        until_waiting(&ours, 2).await;
        writer.done("release").await;
        let our_write = soon(writing).await.unwrap().unwrap();
        let reading = reader.tell("acquire");
        kazoo.until_it_waits_for(&our_write.path()).await;
        assert!(!reading.is_finished());
        expire(&server, &client).await;
        reading.done().await;
        assert_eq!(soon(our_write.lost()).await, LostReason::SessionExpired);
    }
}
