//! `RwLock`, and `ReadLock` and `WriteLock`, each configured to recognize the others.

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
    let own = RwLock::builder(client, PATH).neighbour_writers("__lock__").neighbour_readers("__rlock__");
    own.build().unwrap()
}

/// Waits until the line has `count` contenders.
async fn until_waiting(lock: &RwLock, count: usize) {
    until(async || lock.participants().await.unwrap().len() >= count).await;
}

/// Returns the path of the last node in the line.
async fn last(lock: &RwLock) -> String {
    let line = soon(lock.participants()).await.unwrap();
    format!("{PATH}/{}", line.last().unwrap().name)
}

beside_kazoo! {
    async fn readers_of_both_share_and_a_writer_of_either_excludes_all(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = lock(&client);
        let (reader, writer) = (kazoo.make(READ).await, kazoo.make(WRITE).await);

        let our_read = soon(own.read()).await.unwrap();
        reader.done("acquire").await;
        assert!(matches!(soon(own.try_write()).await, Err(AcquireError::Busy(_))));
        writer.refused("try").await;

        // Kazoo's writer waits for readers of both libraries, and Docent's reader waits for this writer.
        let their_read = last(&own).await;
        let writing = writer.start("acquire");
        kazoo.until_it_waits_for(&their_read).await;
        let reading = tokio::spawn(own.read());
        until_waiting(&own, 4).await;
        reader.done("release").await;
        kazoo.until_it_waits_for(&our_read.path()).await;
        assert!(!writing.is_finished());
        soon(our_read.release()).await.unwrap();
        writing.done().await;
        assert!(!reading.is_finished());
        assert!(matches!(soon(own.try_read()).await, Err(AcquireError::Busy(_))));
        assert!(matches!(soon(own.try_write()).await, Err(AcquireError::Busy(_))));
        writer.done("release").await;
        let our_read = soon(reading).await.unwrap().unwrap();

        // The reverse: Docent's writer and kazoo's reader.
        reader.done("acquire").await;
        let writing = tokio::spawn(own.write());
        until_waiting(&own, 3).await;
        let waiting_write = last(&own).await;
        let late = kazoo.make(READ).await;
        let reading = late.start("acquire");
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

    async fn a_docent_writer_that_steps_down_admits_kazoos_readers_and_no_writer(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = lock(&client);
        let (reader, late) = (kazoo.make(READ).await, kazoo.make(READ).await);
        let (writer, other) = (kazoo.make(WRITE).await, kazoo.make(WRITE).await);

        // A kazoo reader and a kazoo writer wait during the downgrade, and another reader waits behind that
        // writer.
        let our_write = soon(own.write()).await.unwrap();
        let reading = reader.start("acquire");
        kazoo.until_it_waits_for(&our_write.path()).await;
        let their_read = last(&own).await;
        let writing = writer.start("acquire");
        kazoo.until_it_waits_for(&their_read).await;
        let their_write = last(&own).await;
        let reading_late = late.start("acquire");
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

        // A kazoo writer is next in line. It never acquires between the write lock and the downgraded read
        // lock.
        let our_write = soon(own.write()).await.unwrap();
        let writing = writer.start("acquire");
        kazoo.until_it_waits_for(&our_write.path()).await;
        let our_read = soon(our_write.downgrade()).await.unwrap();
        kazoo.until_it_waits_for(&our_read.path()).await;
        assert!(!writing.is_finished());
        other.refused("try").await;
        soon(our_read.release()).await.unwrap();
        writing.done().await;
    }

    async fn either_client_gets_its_side_when_the_session_of_the_other_ends(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let own = lock(&client);
        kazoo.make(READ).await.done("acquire").await;
        let writing = tokio::spawn(own.write());
        until_waiting(&own, 2).await;
        assert!(matches!(soon(own.try_write()).await, Err(AcquireError::Busy(_))));
        kazoo.expire().await;
        soon(soon(writing).await.unwrap().unwrap().release()).await.unwrap();

        let kazoo = Kazoo::start(&server).await;
        kazoo.make(WRITE).await.done("acquire").await;
        let reading = tokio::spawn(own.read());
        until_waiting(&own, 2).await;
        assert!(matches!(soon(own.try_read()).await, Err(AcquireError::Busy(_))));
        kazoo.expire().await;
        let our_read = soon(reading).await.unwrap().unwrap();

        let kazoo = Kazoo::start(&server).await;
        let (reader, writer) = (kazoo.make(READ).await, kazoo.make(WRITE).await);
        let writing = writer.start("acquire");
        kazoo.until_it_waits_for(&our_read.path()).await;
        assert!(!writing.is_finished());
        expire(&server, &client).await;
        writing.done().await;
        assert_eq!(soon(our_read.lost()).await, LostReason::SessionExpired);

        let writing = tokio::spawn(own.write());
        until_waiting(&own, 2).await;
        writer.done("release").await;
        let our_write = soon(writing).await.unwrap().unwrap();
        let reading = reader.start("acquire");
        kazoo.until_it_waits_for(&our_write.path()).await;
        assert!(!reading.is_finished());
        expire(&server, &client).await;
        reading.done().await;
        assert_eq!(soon(our_write.lost()).await, LostReason::SessionExpired);
    }
}
