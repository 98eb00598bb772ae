//! Other clients in the line: Curator's readers and writers, foreign children, revocation, numbers near the
//! end of the counter.

use super::until_in_line;
use crate::{builder, connect};
use docent::locks::{AcquireError, Role};
use docent::{Client, CreateMode, ErrorKind, RwLock};
use docent_battery::{Backend, Rule, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;

const ID: &str = "_c_9a794062-0b31-421c-9cfe-0699f14437da-";
const OTHER_ID: &str = "_c_0a794062-0b31-421c-9cfe-0699f14437da-";

/// Creates a node as Curator does and returns its path.
async fn create(client: &Client, name: &str, mode: CreateMode) -> String {
    client.create(&format!("/lock/{name}"), "127.0.0.1", mode).await.unwrap().path
}

both_backends! {
    async fn names_match_curators_format(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let is_curators = |path: &str, marker: &str| {
            let name = path.strip_prefix("/lock/_c_").unwrap();
            let (id, rest) = name.split_at(36);
            assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
            assert_eq!(&rest[..9], &format!("-{marker}"));
            assert!(rest[9..].len() == 10 && rest[9..].bytes().all(|byte| byte.is_ascii_digit()), "{path}");
        };
        let read = soon(lock.read()).await.unwrap();
        is_curators(&read.path(), "__READ__");
        soon(read.release()).await.unwrap();
        let written = soon(lock.write()).await.unwrap();
        is_curators(&written.path(), "__WRIT__");
        is_curators(&soon(written.downgrade()).await.unwrap().path(), "__READ__");
    }

    async fn curators_writers_are_waited_for_and_its_readers_only_by_writers(backend: Backend) {
        let server = backend.start().await;
        let (client, curator) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let read = create(&curator, &format!("{ID}__READ__"), CreateMode::EphemeralSequential).await;
        let reading = soon(lock.read()).await.unwrap();
        let writer = tokio::spawn(lock.write());
        until_in_line(&lock, 3).await;
        drop(reading);
        until_in_line(&lock, 2).await;
        assert!(!writer.is_finished());
        curator.delete(&read, None).await.unwrap();
        drop(soon(writer).await.unwrap().unwrap());
        until_in_line(&lock, 0).await;

        let write = create(&curator, &format!("{ID}__WRIT__"), CreateMode::EphemeralSequential).await;
        let reader = tokio::spawn(lock.read());
        until_in_line(&lock, 2).await;
        assert!(!reader.is_finished());
        curator.delete(&write, None).await.unwrap();
        let _ = soon(reader).await.unwrap().unwrap();
    }

    async fn a_writer_of_curators_that_steps_down_keeps_its_place(backend: Backend) {
        let server = backend.start().await;
        let (client, curator) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let write = create(&curator, &format!("{ID}__WRIT__"), CreateMode::EphemeralSequential).await;
        let reader = tokio::spawn(lock.read());
        until_in_line(&lock, 2).await;
        let writer = tokio::spawn(lock.write());
        until_in_line(&lock, 3).await;
        // Curator's reader has its writer's number, and both nodes exist for a while.
        let number = &write[write.len() - 10..];
        let read = create(&curator, &format!("{OTHER_ID}__READ__{number}"), CreateMode::Ephemeral).await;
        curator.delete(&write, None).await.unwrap();
        let reader = soon(reader).await.unwrap().unwrap();
        soon(reader.release()).await.unwrap();
        until_in_line(&lock, 2).await;
        assert!(!writer.is_finished(), "the writer overtook a downgraded writer");
        curator.delete(&read, None).await.unwrap();
        let _ = soon(writer).await.unwrap().unwrap();
    }

    async fn kazoos_readers_and_writers_are_waited_for_if_configured_as_neighbours(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::builder(&client, "/lock").neighbour_writers("__lock__").neighbour_readers("__rlock__");
        let lock = lock.build().unwrap();
        let kazoo = |kind: &str| format!("8eb6557ec51a32d1e0cb91e4d5e9a5c5__{kind}__");
        let reader = create(&other, &kazoo("rlock"), CreateMode::EphemeralSequential).await;
        let read = soon(lock.read()).await.unwrap();
        let waiting = tokio::spawn(lock.write());
        until_in_line(&lock, 3).await;
        soon(read.release()).await.unwrap();
        assert!(!waiting.is_finished(), "the other client's reader still holds");
        let writer = create(&other, &kazoo("lock"), CreateMode::EphemeralSequential).await;
        assert!(matches!(soon(lock.try_read()).await, Err(AcquireError::Busy(_))));
        let reading = tokio::spawn(lock.read());
        until_in_line(&lock, 4).await;
        let roles: Vec<_> = soon(lock.participants()).await.unwrap().iter().map(|one| one.role).collect();
        assert_eq!(roles, [Role::Shared, Role::Exclusive, Role::Exclusive, Role::Shared]);
        other.delete(&reader, None).await.unwrap();
        soon(soon(waiting).await.unwrap().unwrap().release()).await.unwrap();
        until_in_line(&lock, 2).await;
        assert!(!reading.is_finished(), "the other client's writer still holds");
        other.delete(&writer, None).await.unwrap();
        drop(soon(reading).await.unwrap().unwrap());
    }

    async fn foreign_children_are_ignored(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for name in ["foo", "__WRIT__", "__READ__abc", "x-lock-0000000000", "x-__WRIT__000000000", "-0000000001"] {
            other.create(&format!("/lock/{name}"), "", CreateMode::Persistent).await.unwrap();
        }
        let lock = RwLock::new(&client, "/lock").unwrap();
        soon(soon(lock.write()).await.unwrap().release()).await.unwrap();
        soon(soon(lock.try_read()).await.unwrap().release()).await.unwrap();
    }

    async fn revoked_readers_and_writers_may_keep_the_lock(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (lock, peer) = (RwLock::new(&client, "/lock").unwrap(), RwLock::new(&other, "/lock").unwrap());
        let read = soon(lock.read()).await.unwrap();
        let participant = soon(peer.participants()).await.unwrap().remove(0);
        soon(peer.revoke(&participant)).await.unwrap();
        assert_eq!(other.get(&read.path()).await.unwrap().data, "__REVOKE__");
        soon(read.revoked()).await;
        assert!(read.is_held());
        soon(read.release()).await.unwrap();
        let written = soon(lock.write()).await.unwrap();
        soon(peer.revoke(&soon(peer.participants()).await.unwrap()[0])).await.unwrap();
        soon(written.revoked()).await;
        assert!(written.is_held());
        assert_eq!(soon(peer.revoke(&participant)).await.unwrap_err().kind(), ErrorKind::NoNode);
    }

    async fn contenders_near_the_end_of_the_counter_are_ordered_by_creation(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let earlier = create(&other, &format!("{ID}__WRIT__2147483647"), CreateMode::Ephemeral).await;
        let reader = tokio::spawn(lock.read());
        until_in_line(&lock, 2).await;
        create(&other, &format!("{OTHER_ID}__WRIT__-2147483648"), CreateMode::Ephemeral).await;
        assert!(!reader.is_finished());
        other.delete(&earlier, None).await.unwrap();
        // The waiter does not wait for the later node, although its number is lower.
        assert!(soon(reader).await.unwrap().unwrap().is_held());
    }

    async fn near_the_end_of_the_counter_a_writer_that_steps_down_during_listings_is_not_overtaken(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let other = connect(&server).await;
        let write = create(&other, &format!("{ID}__WRIT__"), CreateMode::EphemeralSequential).await;
        let writer = tokio::spawn(RwLock::new(&client, "/lock").unwrap().write());
        let watches = |trace: &[Traced]| trace.iter().filter(|frame| frame.is_reply(OpCode::SetWatches)).count();
        soon(proxy.until(|trace| watches(trace) == 1)).await;
        // From now on, contenders are ordered by creation, for which the waiter reads each of them after a
        // listing.
        create(&other, &format!("{OTHER_ID}__WRIT__-2147483648"), CreateMode::Ephemeral).await;
        let full = server.path(write.trim_start_matches('/'));
        let lookups = proxy.add(Rule::on(OpCode::Exists).path(move |path| path == full).hold());
        // A change on another link than that of its watches makes the waiter list the line again.
        proxy.reset().await;
        soon(proxy.until(|trace| watches(trace) == 2)).await;
        other.set(&write, "", None).await.unwrap();
        soon(lookups.fired()).await;
        let number = &write[write.len() - 10..];
        let read = create(&other, &format!("{OTHER_ID}__READ__{number}"), CreateMode::Ephemeral).await;
        other.delete(&write, None).await.unwrap();
        proxy.heal().await.unwrap();
        // The writer waits for the reader in the other writer's place.
        soon(proxy.until(|trace| watches(trace) == 3)).await;
        assert!(!writer.is_finished(), "the writer holds beside a reader");
        other.delete(&read, None).await.unwrap();
        assert!(soon(writer).await.unwrap().unwrap().is_held());
    }

    async fn an_empty_line_can_be_reset(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let written = soon(lock.write()).await.unwrap();
        let fence = written.fence();
        assert_eq!(soon(lock.reset()).await.unwrap_err().kind(), ErrorKind::NotEmpty);
        soon(written.release()).await.unwrap();
        soon(lock.reset()).await.unwrap();
        let written = soon(lock.write()).await.unwrap();
        assert!(written.path().ends_with("__WRIT__0000000000") && written.fence() > fence);
    }
}
