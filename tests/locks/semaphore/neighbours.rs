//! Curator's permits count, and foreign children do not.

use super::until_participants;
use crate::connect;
use docent::{CreateMode, Semaphore};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;

const ID: &str = "_c_9a794062-0b31-421c-9cfe-0699f14437da-";

both_backends! {
    async fn names_and_folders_match_curators_format(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        let held = soon(semaphore.acquire()).await.unwrap();
        let name = held.paths()[0].strip_prefix("/semaphore/leases/_c_").unwrap().to_owned();
        assert_eq!(&name[36..], "-lease-0000000000");
        let waiting = tokio::spawn(semaphore.acquire());
        until_participants(&semaphore, 2).await;
        let locks = soon(client.children("/semaphore/locks")).await.unwrap().names;
        assert!(locks.len() == 1 && locks[0].contains("-lock-00000000"), "{locks:?}");
        waiting.abort();
    }

    async fn permits_and_turns_of_curator_are_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (client, curator) = (connect(&server).await, connect(&server).await);
        let create = async |folder: &str, name: &str| {
            let path = format!("/semaphore/{folder}/{ID}{name}");
            curator.create(&path, "127.0.0.1", CreateMode::EphemeralSequential).await.unwrap().path
        };
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        let (turn, lease) = (create("locks", "lock-").await, create("leases", "lease-").await);
        let waiting = tokio::spawn(semaphore.acquire());
        until_participants(&semaphore, 3).await;
        curator.delete(&turn, None).await.unwrap();
        soon(async {
            while client.children("/semaphore/leases").await.unwrap().names.len() != 2 {
                docent_tests::pause().await;
            }
        }).await;
        assert!(!waiting.is_finished());
        curator.delete(&lease, None).await.unwrap();
        let _ = soon(waiting).await.unwrap().unwrap();
    }

    async fn foreign_children_are_not_counted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for name in ["leases/foo", "leases/x-lock-0000000000", "locks/lease-1", "leases/lease-", "other"] {
            client.create(&format!("/semaphore/{name}"), "", CreateMode::Persistent).await.unwrap();
        }
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        let held = soon(semaphore.acquire()).await.unwrap();
        soon(held.release()).await.unwrap();
        let _ = soon(semaphore.try_acquire()).await.unwrap();
    }
}
