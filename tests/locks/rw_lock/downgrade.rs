//! A writer that is downgraded keeps its place.

use super::until_in_line;
use crate::{builder, connect};
use docent::locks::{AcquireError, Owner, Role};
use docent::recipe::{ClaimRequest, ClaimResult, Line, claim_all};
use docent::{CreateMode, ErrorKind, LostReason, Released, RwLock};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{KIND, child_count, soon, until};
use std::future::Future;
use std::pin::pin;

use std::task::{Context, Poll, Waker};
use std::time::Duration;

both_backends! {
    async fn a_writer_that_steps_down_lets_the_readers_right_behind_it_in_and_keeps_its_fence(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let written = soon(lock.write()).await.unwrap();
        let (fence, token, path) = (written.fence(), written.token(), written.path());
        let reader = tokio::spawn(RwLock::new(&other, "/lock").unwrap().read());
        until_in_line(&lock, 2).await;
        let read = soon(written.downgrade()).await.unwrap();
        assert!(read.is_held());
        assert_eq!(read.fence(), Some(fence));
        assert_ne!(read.path(), path);
        let number = |path: &str| path[path.len() - 10..].to_owned();
        assert_eq!(number(&read.path()), number(&path), "the reader must have the writer's number");
        let other = soon(reader).await.unwrap().unwrap();
        assert!(other.is_held() && read.is_held());
        soon(read.verify()).await.unwrap();
        assert!(!token.is_cancelled(), "a downgrade is not a loss");
        soon(read.release()).await.unwrap();
        assert!(!token.is_cancelled());
        drop(other);
        until_in_line(&lock, 0).await;
    }

    async fn a_writer_that_waits_stays_behind_one_that_steps_down(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let written = soon(lock.write()).await.unwrap();
        let fence = written.fence();
        let writer = tokio::spawn(RwLock::new(&other, "/lock").unwrap().write());
        until_in_line(&lock, 2).await;
        let late = tokio::spawn(lock.read());
        until_in_line(&lock, 3).await;
        let read = soon(written.downgrade()).await.unwrap();
        let line = soon(async {
            loop {
                let line = lock.participants().await.unwrap();
                if line.len() == 3 { break line; }
            }
        }).await;
        assert_eq!(line.iter().map(|p| (p.role, p.holds)).collect::<Vec<_>>(), [
            (Role::Shared, true), (Role::Exclusive, false), (Role::Shared, false),
        ]);
        // The next writer finds the reader in the place of the downgraded writer's node.
        assert!(read.is_held() && !writer.is_finished() && !late.is_finished());
        soon(read.release()).await.unwrap();
        let next = soon(writer).await.unwrap().unwrap();
        assert!(next.fence() > fence);
        assert!(!late.is_finished());
        drop(next);
        let _ = soon(late).await.unwrap().unwrap();
    }

    async fn a_writer_that_reads_and_then_drops_its_write_lock_steps_down_as_by_downgrade(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (lock, peer) = (RwLock::new(&client, "/lock").unwrap(), RwLock::new(&other, "/lock").unwrap());
        for drops in [true, false] {
            let owner = Owner::new();
            let written = soon(lock.write_as(&owner)).await.unwrap();
            let (fence, number) = (written.fence(), written.path()[written.path().len() - 10..].to_owned());
            let reading = tokio::spawn(peer.read());
            until_in_line(&lock, 2).await;
            let writing = tokio::spawn(peer.write());
            until_in_line(&lock, 3).await;
            let read = soon(lock.read_as(&owner)).await.unwrap();
            assert!(read.path().ends_with(&number) && read.path() != written.path());
            assert!(!reading.is_finished(), "the writer still holds");
            match drops {
                true => drop(written),
                false => assert_eq!(soon(written.release()).await.unwrap(), Released::Done),
            }
            let their_read = soon(reading).await.unwrap().unwrap();
            assert!(read.is_held() && their_read.is_held());
            assert_eq!(read.fence(), Some(fence), "expected the writer's fence");
            soon(their_read.release()).await.unwrap();
            soon(read.verify()).await.unwrap();
            assert!(!writing.is_finished(), "a reader still holds");
            assert!(matches!(soon(lock.write_as(&owner)).await, Err(AcquireError::WouldDeadlock)));
            soon(read.release()).await.unwrap();
            let next = soon(writing).await.unwrap().unwrap();
            assert!(next.fence() > fence);
            soon(next.release()).await.unwrap();
            until_in_line(&lock, 0).await;
        }
    }

    async fn a_writer_with_a_nested_reader_writes_again_and_steps_down_to_that_reader(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let written = soon(lock.write_as(&owner)).await.unwrap();
        let nested = soon(lock.read_as(&owner)).await.unwrap();
        let again = soon(lock.write_as(&owner)).await.unwrap();
        assert_eq!(again.path(), written.path());
        assert_eq!(soon(lock.read_as(&owner)).await.unwrap().path(), nested.path());
        let line = soon(lock.participants()).await.unwrap();
        assert_eq!(line.iter().map(|one| (one.role, one.holds)).collect::<Vec<_>>(), [
            (Role::Exclusive, true), (Role::Shared, true),
        ]);
        drop(again);
        let token = written.token();
        let read = soon(written.downgrade()).await.unwrap();
        assert_eq!(read.path(), nested.path());
        until_in_line(&lock, 1).await;
        let _peer_guard = soon(RwLock::new(&other, "/lock").unwrap().read()).await.unwrap();
        drop(nested);
        assert!(read.is_held() && !token.is_cancelled());
        other.delete(&read.path(), None).await.unwrap();
        assert_eq!(soon(read.lost()).await, LostReason::NodeDeleted);
        assert!(token.is_cancelled(), "the writer's token must be cancelled");
    }

    async fn a_reader_in_a_writer_outlives_the_loss_of_the_writer(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let owner = Owner::new();
        let written = soon(lock.write_as(&owner)).await.unwrap();
        let nested = soon(lock.read_as(&owner)).await.unwrap();
        other.delete(&written.path(), None).await.unwrap();
        assert_eq!(soon(written.lost()).await, LostReason::NodeDeleted);
        assert!(nested.is_held() && !nested.token().is_cancelled());
        soon(nested.verify()).await.unwrap();
        let peer = RwLock::new(&other, "/lock").unwrap();
        assert!(matches!(soon(peer.try_write()).await, Err(AcquireError::Busy(_))));
        drop(soon(peer.try_read()).await.unwrap());
        drop(written);
        soon(nested.release()).await.unwrap();
        until_in_line(&lock, 0).await;
    }

    async fn a_reply_that_is_lost_while_a_writer_begins_to_read_leaves_one_node_of_each(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let lock = RwLock::new(&client, "/lock").unwrap();
        let read_tickets = || Rule::on(OpCode::Multi).path(|path| path.contains("__READ__"));
        for rule in [read_tickets().reset_before(), read_tickets().reset_after()] {
            let owner = Owner::new();
            let written = soon(lock.write_as(&owner)).await.unwrap();
            let lost = proxy.add(rule);
            let read = soon(lock.read_as(&owner)).await.unwrap();
            soon(lost.fired()).await;
            until_in_line(&lock, 2).await;
            drop(written);
            until_in_line(&lock, 1).await;
            assert!(read.is_held());
            soon(read.release()).await.unwrap();
            assert!(soon(lock.participants()).await.unwrap().is_empty());
        }
    }

    async fn a_writer_that_begins_to_read_and_gives_up_at_any_poll_leaves_only_its_own_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        for polls in 0.. {
            let owner = Owner::new();
            let written = soon(lock.write_as(&owner)).await.unwrap();
            let done = {
                let mut read = pin!(lock.read_as(&owner));
                let mut done = false;
                for poll in 0..polls {
                    done = match poll {
                        0 => read.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready(),
                        _ => soon(poll_once_more(read.as_mut())).await,
                    };
                    if done { break; }
                }
                done
            };
            until_in_line(&lock, 1).await;
            assert!(written.is_held());
            soon(written.release()).await.unwrap();
            until_in_line(&lock, 0).await;
            if done { return; }
            assert!(polls < 20, "too many polls");
        }
    }

    async fn the_readers_node_exists_before_the_writers_node_is_deleted(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let written = soon(RwLock::new(&client, "/lock").unwrap().write()).await.unwrap();
        let node = server.path(written.path().trim_start_matches('/'));
        let before = server.front().trace().len();
        let _read = soon(written.downgrade()).await.unwrap();
        let is_delete = |f: &docent_battery::Traced| f.is_request(OpCode::Delete) && f.path.as_ref() == Some(&node);
        soon(server.front().until(|trace| trace.iter().any(is_delete))).await;
        let trace = server.front().trace();
        let created = trace[before..].iter().position(|f| f.is_reply(OpCode::Multi)).unwrap();
        let deleted = trace[before..].iter().position(is_delete).unwrap();
        assert!(created < deleted);
    }

    async fn a_reply_that_is_lost_while_stepping_down_leaves_one_node(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let lock = RwLock::new(&client, "/lock").unwrap();
        for rule in [Rule::on(OpCode::Multi).reset_before(), Rule::on(OpCode::Multi).reset_after()] {
            let written = soon(lock.write()).await.unwrap();
            let lost = proxy.add(rule);
            let read = soon(written.downgrade()).await.unwrap();
            soon(lost.fired()).await;
            until_in_line(&lock, 1).await;
            let line = soon(lock.participants()).await.unwrap();
            assert!(read.path().ends_with(&line[0].name));
            assert!(read.is_held());
            soon(read.verify()).await.unwrap();
            soon(read.release()).await.unwrap();
            assert!(soon(lock.participants()).await.unwrap().is_empty());
        }
    }

    async fn a_lost_writer_cannot_step_down(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lock = RwLock::new(&client, "/lock").unwrap();
        let written = soon(lock.write()).await.unwrap();
        other.delete(&written.path(), None).await.unwrap();
        let error = soon(written.downgrade()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost(LostReason::NodeDeleted));
        until_in_line(&lock, 0).await;
    }

    async fn a_token_of_the_writer_is_cancelled_by_the_loss_of_the_reader(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let written = soon(RwLock::new(&client, "/lock").unwrap().write()).await.unwrap();
        let token = written.token();
        let read = soon(written.downgrade()).await.unwrap();
        other.delete(&read.path(), None).await.unwrap();
        assert_eq!(soon(read.lost()).await, LostReason::NodeDeleted);
        assert!(token.is_cancelled() && read.token().is_cancelled());
    }

    async fn a_writer_with_other_guards_does_not_step_down_and_they_stay_valid(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lock = RwLock::new(&client, "/lock").unwrap();
        let written = soon(lock.write()).await.unwrap();
        let nested = written.reenter().unwrap();
        let error = soon(written.downgrade()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("1 other guards of the hold must be released first"), "{error}");
        assert!(nested.is_held());
        assert_eq!(soon(lock.participants()).await.unwrap()[0].role, Role::Exclusive);
    }

    async fn a_writer_that_steps_down_stays_a_contender_even_if_markers_end_with_a_digit(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let sides = |client| Line::sides(client, "/lock", &KIND, "w2", "r2").unwrap();
        let (writers, readers) = sides(&client);
        let read = soon(soon(writers.acquire(None)).await.unwrap().downgrade(&readers)).await.unwrap();
        assert!(read.is_held());
        // The writer's node is deleted in the background.
        until(async || child_count(&other, "/lock").await == 1).await;
        let ticket = soon(sides(&other).0.take_ticket(None)).await.unwrap();
        assert_eq!(ticket.ahead(), Some(1));
        assert!(soon(ticket.try_now()).await.unwrap().is_none(), "a writer holds beside the reader");
    }

    async fn a_claim_cannot_step_down(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/item", "", CreateMode::Persistent).await.unwrap();
        let wanted = ClaimRequest { claim: "/item/claim".to_owned(), node: "/item".to_owned(), handed_out: true, beside_curator: false };
        let ClaimResult::All(mut claims) = soon(claim_all(&client, &[wanted], &KIND, "take")).await.unwrap() else {
            panic!("no other client claims the item")
        };
        let (claim, _) = claims.remove(0);
        let (_, readers) = Line::sides(&client, "/lock", &KIND, "w-", "r-").unwrap();
        let error = soon(claim.downgrade(&readers)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("must be in a line"), "{error}");
    }

    /// The next lent hold would be exclusive and coexist with the reader.
    async fn a_lent_hold_does_not_step_down(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (writers, readers) = Line::sides(&client, "/lock", &KIND, "w-", "r-").unwrap();
        let hold = soon(writers.acquire(None)).await.unwrap();
        let lent = hold.lend(Duration::ZERO);
        let refused = [soon(lent.beside(&readers)).await, soon(lent.downgrade(&readers)).await];
        assert!(hold.may_be_lent_again() && hold.lend(Duration::ZERO).is_held(), "the hold is unaffected");
        for refused in refused {
            let error = refused.expect_err("a reader holds beside the next lent hold");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains("/lock/") && error.to_string().contains("lent"), "{error}");
        }
        assert_eq!(client.children("/lock").await.unwrap().names.len(), 1);
    }
}

/// Polls again after an event. Returns true if the future completed.
async fn poll_once_more<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    let mut remaining = 2;
    std::future::poll_fn(|cx| {
        remaining -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if remaining == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
