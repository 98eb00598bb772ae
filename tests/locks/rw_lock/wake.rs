//! Readers that a writer admits do not list the line, and their cost grows only with their number.

use super::until_in_line;
use crate::connect;
use docent::locks::{AcquireError, ReadGuard};
use docent::{Client, CreateMode, RwLock};
use docent_battery::{Backend, FrameKind, TestServer, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use futures_util::future::join_all;
use tokio::task::JoinHandle;

const READERS: usize = 24;

/// Waiting readers of one client, after all of them have set their watches.
async fn waiting(
    server: &TestServer,
    client: &Client,
    ahead: usize,
) -> Vec<JoinHandle<Result<ReadGuard, AcquireError>>> {
    let lock = RwLock::new(client, "/lock").unwrap();
    let before = count(&server.front().trace(), OpCode::SetWatches);
    let readers: Vec<_> = (0..READERS).map(|_| tokio::spawn(lock.read())).collect();
    until_in_line(&lock, ahead + READERS).await;
    // Each reader watches one node ahead and its own node with one request.
    let watches = |trace: &[Traced]| count(trace, OpCode::SetWatches) >= before + READERS;
    soon(server.front().until(watches)).await;
    for _ in 0..3 {
        client.sync("/").await.unwrap();
    }
    readers
}

/// Number of replies to requests of the kind `op`.
fn count(trace: &[Traced], op: OpCode) -> usize {
    trace.iter().filter(|frame| frame.is_reply(op)).count()
}

/// Waits until all readers have the lock. Returns the frames sent and received for that.
async fn let_in(
    server: &TestServer,
    before: usize,
    readers: Vec<JoinHandle<Result<ReadGuard, AcquireError>>>,
) -> Vec<Traced> {
    let guards: Vec<_> =
        soon(join_all(readers)).await.into_iter().map(|read| read.unwrap().unwrap()).collect();
    assert!(guards.iter().all(|guard| guard.is_held()));
    server.front().trace()[before..].to_vec()
}

/// Bytes of requests, replies and events, without pings.
fn bytes(trace: &[Traced]) -> usize {
    let counts = |frame: &&Traced| frame.kind != FrameKind::Connect && frame.op != Some(OpCode::Ping);
    trace.iter().filter(counts).map(|frame| frame.length).sum()
}

both_backends! {
    async fn readers_behind_a_writer_do_not_list_the_line_when_it_leaves(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let written = soon(RwLock::new(&other, "/lock").unwrap().write()).await.unwrap();
        let readers = waiting(&server, &client, 1).await;
        let before = server.front().trace().len();
        soon(written.release()).await.unwrap();
        let trace = let_in(&server, before, readers).await;
        assert_eq!(count(&trace, OpCode::GetChildren2), 0);
        assert!(bytes(&trace) < READERS * 1_000, "{} bytes", bytes(&trace));
    }

    async fn readers_behind_a_writer_that_steps_down_do_not_list_the_line(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let written = soon(RwLock::new(&other, "/lock").unwrap().write()).await.unwrap();
        let readers = waiting(&server, &client, 1).await;
        let before = server.front().trace().len();
        let read = soon(written.downgrade()).await.unwrap();
        let trace = let_in(&server, before, readers).await;
        assert!(read.is_held());
        assert_eq!(count(&trace, OpCode::GetChildren2), 0);
    }

    async fn readers_behind_several_writers_watch_only_those_and_wait_for_each(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&other, "/lock").unwrap();
        let first = soon(lock.write()).await.unwrap();
        let second = tokio::spawn(lock.write());
        until_in_line(&lock, 2).await;
        let third = tokio::spawn(lock.write());
        until_in_line(&lock, 3).await;
        let readers = waiting(&server, &client, 3).await;
        let before = server.front().trace().len();
        soon(first.release()).await.unwrap();
        let second = soon(second).await.unwrap().unwrap();
        for _ in 0..3 {
            client.sync("/").await.unwrap();
        }
        assert!(readers.iter().all(|reader| !reader.is_finished()), "a writer holds, and another one waits");
        // The nearest writer gives up, of which the readers are not notified yet.
        third.abort();
        until_in_line(&lock, 1 + READERS).await;
        assert!(readers.iter().all(|reader| !reader.is_finished()), "a writer holds");
        soon(second.release()).await.unwrap();
        let trace = let_in(&server, before, readers).await;
        assert!(count(&trace, OpCode::SetWatches) >= READERS, "each reader must watch the other two writers");
        let of_readers = trace.iter().filter(|frame| frame.link != 1 && frame.is_reply(OpCode::GetChildren2));
        // The second writer listed the line for itself before it held the lock.
        assert!(of_readers.count() <= 1);
    }

    async fn a_reader_behind_very_many_writers_waits_for_all_of_them(backend: Backend) {
        let server = backend.start().await;
        let (client, curator) = (connect(&server).await, connect(&server).await);
        let mut writers = Vec::new();
        for _ in 0..40 {
            let writer = "/lock/_c_9a794062-0b31-421c-9cfe-0699f14437da-__WRIT__";
            writers.push(curator.create(writer, "", CreateMode::EphemeralSequential).await.unwrap().path);
        }
        let lock = RwLock::new(&client, "/lock").unwrap();
        let reader = tokio::spawn(lock.read());
        until_in_line(&lock, 41).await;
        // Deletes the last writer, one in the middle, and then all but the first.
        for leaves in [39, 20] {
            curator.delete(&writers.remove(leaves), None).await.unwrap();
        }
        for writer in writers.drain(1..) {
            curator.delete(&writer, None).await.unwrap();
        }
        until_in_line(&lock, 2).await;
        for _ in 0..5 {
            client.sync("/").await.unwrap();
        }
        assert!(!reader.is_finished(), "a writer holds");
        curator.delete(&writers[0], None).await.unwrap();
        drop(soon(reader).await.unwrap().unwrap());
    }
}
