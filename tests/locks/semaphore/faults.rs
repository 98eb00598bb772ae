//! Nodes that are deleted, and sessions that are lost, while a client waits.

use super::until_participants;
use crate::{builder, connect};
use docent::locks::{AcquireError, Permit};
use docent::{CreateMode, Semaphore};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::soon;
use tokio::task::JoinHandle;

both_backends! {
    async fn a_waiter_whose_ticket_for_a_permit_is_deleted_takes_a_new_one(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        let (held, waiting, ticket) = holder_and_waiter(&semaphore).await;
        other.delete(&format!("/semaphore/leases/{ticket}"), None).await.unwrap();
        soon(async { while until_second_lease(&semaphore).await == ticket { docent_tests::pause().await } }).await;
        soon(held.release()).await.unwrap();
        let permit = soon(waiting).await.unwrap().unwrap();
        until_participants(&semaphore, 1).await;
        assert!(permit.is_held());
    }

    async fn a_waiter_whose_turn_is_deleted_starts_again_and_leaves_no_orphan(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        let (held, waiting, ticket) = holder_and_waiter(&semaphore).await;
        let turn = other.children("/semaphore/locks").await.unwrap().names.remove(0);
        other.delete(&format!("/semaphore/locks/{turn}"), None).await.unwrap();
        soon(async { while until_second_lease(&semaphore).await == ticket { docent_tests::pause().await } }).await;
        soon(held.release()).await.unwrap();
        drop(soon(waiting).await.unwrap().unwrap());
        until_participants(&semaphore, 0).await;
    }

    async fn a_try_whose_draw_reply_is_lost_still_gets_its_permit(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let semaphore = Semaphore::new(&client, "/semaphore", 2).unwrap();
        let _held = soon(semaphore.acquire()).await.unwrap();
        for folder in ["/locks/", "/leases/"] {
            let lost = proxy.add(Rule::on(OpCode::Create2).path(move |path| path.contains(folder)).reset_after());
            let permit = soon(semaphore.try_acquire()).await.unwrap();
            assert!(lost.has_fired() && permit.is_held());
            soon(permit.release()).await.unwrap();
            until_participants(&semaphore, 1).await;
        }
    }

    async fn a_try_whose_ticket_is_deleted_checks_again(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        other.create("/semaphore/leases", "", CreateMode::Persistent).await.unwrap();
        let lost = proxy.add(Rule::on(OpCode::Create2).path(|path| path.contains("/leases/")).reset_after());
        // The listings are: one before the ticket is drawn, one with it, one that finds it, and one that
        // shows its place.
        let listed = Rule::on(OpCode::GetChildren2).path(|path| path.ends_with("/leases")).nth(4);
        let listed = proxy.add(listed.hold());
        let trying = tokio::spawn(semaphore.try_acquire());
        soon(listed.fired()).await;
        assert!(lost.has_fired());
        let ticket = other.children("/semaphore/leases").await.unwrap().names.remove(0);
        other.delete(&format!("/semaphore/leases/{ticket}"), None).await.unwrap();
        proxy.heal().await.unwrap();
        let permit = soon(trying).await.unwrap().unwrap();
        assert!(permit.is_held() && !permit.paths()[0].ends_with(&ticket));
    }

    async fn a_waiter_whose_session_ends_takes_new_tickets(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Semaphore::new(&other, "/semaphore", 1).unwrap().acquire()).await.unwrap();
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        let waiting = tokio::spawn(semaphore.acquire());
        until_second_lease(&semaphore).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(held.release()).await.unwrap();
        let _ = soon(waiting).await.unwrap().unwrap();
    }

    async fn holders_and_waiters_continue_after_a_server_restart(backend: Backend) {
        let server = backend.start_own().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let held = soon(Semaphore::new(&other, "/semaphore", 1).unwrap().acquire()).await.unwrap();
        let semaphore = Semaphore::new(&client, "/semaphore", 1).unwrap();
        let waiting = tokio::spawn(semaphore.acquire());
        until_second_lease(&semaphore).await;
        server.stop().await;
        server.start_again().await;
        // The permit may already be lost. Then the release reports it.
        let _ = soon(held.release()).await;
        drop(soon(waiting).await.unwrap().unwrap());
        until_participants(&semaphore, 0).await;
    }
}

/// Returns the holder of the only permit, a waiter for it, and the name of the waiter's ticket.
async fn holder_and_waiter(
    semaphore: &Semaphore,
) -> (Permit, JoinHandle<Result<Permit, AcquireError>>, String) {
    let held = soon(semaphore.acquire()).await.unwrap();
    let waiting = tokio::spawn(semaphore.acquire());
    let ticket = until_second_lease(semaphore).await;
    (held, waiting, ticket)
}

/// Waits until a client waits with a ticket for a permit, and returns the ticket's name.
async fn until_second_lease(semaphore: &Semaphore) -> String {
    soon(async {
        loop {
            let all = semaphore.participants().await.unwrap();
            if let Some(waiting) = all.iter().find(|one| !one.holds && one.name.contains("lease-")) {
                return waiting.name.clone();
            }
            docent_tests::pause().await;
        }
    })
    .await
}
