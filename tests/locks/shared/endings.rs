//! Losses and the end of a client.

use super::{shared, until_empty, waiters};
use crate::connect;
use docent::locks::AcquireError;
use docent::recipe::Line;
use docent::{ErrorKind, LostReason};
use docent_battery::{Backend, both_backends};
use docent_tests::{KIND, PATIENCE, soon};
use futures_util::future::join_all;
use futures_util::poll;
use std::time::Duration;

both_backends! {
    async fn a_loss_reaches_the_holder_and_the_waiting_tasks_take_a_new_ticket_immediately(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let mut waiting = waiters(&mutex, 3).await;
        other.delete(&first.path(), None).await.unwrap();
        assert_eq!(soon(first.lost()).await, LostReason::NodeDeleted);
        assert!(!first.is_held() && first.token().is_cancelled() && first.reenter().is_err());
        // The next task does not wait until the lost guard is dropped.
        let second = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert!(second.is_held() && second.fence() > first.fence() && second.fence().turn() == 0);
        drop(first);
        assert!(second.is_held(), "the end of a lost turn must not affect the next");
        let session = client.session_id().unwrap();
        server.expire(session).await.unwrap();
        assert_eq!(soon(second.lost()).await, LostReason::SessionExpired);
        let third = soon(waiting.remove(0)).await.unwrap().unwrap();
        assert!(third.is_held() && third.fence() > second.fence());
        assert_eq!(soon(second.release()).await.unwrap_err().kind(), ErrorKind::Lost(LostReason::SessionExpired));
        third.release().await.unwrap();
        assert_eq!(soon(waiting.remove(0)).await.unwrap().unwrap().fence().turn(), 1);
    }

    async fn a_token_is_not_cancelled_by_a_loss_after_its_turn(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let first = soon(mutex.acquire()).await.unwrap();
        let next = waiters(&mutex, 1).await.remove(0);
        let token = first.token();
        drop(first);
        let second = soon(next).await.unwrap().unwrap();
        other.delete(&second.path(), None).await.unwrap();
        soon(second.lost()).await;
        assert!(second.token().is_cancelled() && !token.is_cancelled());
    }

    async fn a_token_is_not_cancelled_when_the_ticket_is_given_up(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let guard = soon(shared(&client, 9).acquire()).await.unwrap();
        // The transaction keeps the state of the turn alive.
        let (token, _late) = (guard.token(), guard.transaction());
        soon(guard.release()).await.unwrap();
        until_empty(&client).await;
        assert!(!token.is_cancelled(), "a release is not a loss");
    }

    async fn a_lent_hold_ends_with_the_hold_that_lent_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let line = Line::new(&client, "/lock", &KIND, "lent-").unwrap();
        let hold = soon(line.acquire(None)).await.unwrap();
        let first = hold.lend(Duration::ZERO);
        soon(first.release()).await.unwrap();
        assert!(hold.is_held() && hold.may_be_lent_again());
        let second = hold.lend(Duration::ZERO);
        let third = hold.lend(Duration::ZERO);
        assert!(!second.is_held() && third.is_held(), "only one may be lent at a time");
        assert_eq!(soon(second.lost()).await, LostReason::Released);
        let token = third.token();
        soon(hold.release()).await.unwrap();
        assert!(!third.is_held() && token.is_cancelled(), "the hold was released");
        assert_eq!(soon(third.lost()).await, LostReason::Released);
        // A turn that a lost hold lends is lost from the start.
        let hold = soon(line.acquire(None)).await.unwrap();
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(hold.lost()).await;
        let late = hold.lend(Duration::ZERO);
        assert!(!late.is_held() && late.token().is_cancelled() && !hold.may_be_lent_again());
        assert_eq!(late.check().unwrap_err().reason, LostReason::SessionExpired);
    }

    async fn a_turn_that_was_lost_before_it_was_taken_is_not_taken(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let mut late = Box::pin(mutex.acquire());
        assert!(poll!(late.as_mut()).is_pending());
        let next = waiters(&mutex, 1).await.remove(0);
        let place = guard.path();
        drop(guard);
        other.delete(&place, None).await.unwrap();
        // The next task draws as soon as the loss is known.
        let guard = soon(next).await.unwrap().unwrap();
        assert!(guard.fence().turn() == 0 && guard.path() != place);
        assert!(poll!(late.as_mut()).is_pending());
        drop(guard);
        let late = soon(late).await.unwrap();
        assert!(late.is_held() && late.path() != place);
    }

    async fn a_client_that_shuts_down_passes_no_ticket_on(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let waiting = waiters(&mutex, 3).await;
        let shutdown = tokio::spawn(client.clone().shutdown(PATIENCE));
        soon(guard.revoked()).await;
        drop(guard);
        for waiter in waiting {
            let Err(AcquireError::Core(error)) = soon(waiter).await.unwrap() else { panic!("got a turn") };
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
        soon(shutdown).await.unwrap();
    }

    async fn a_client_that_is_closed_ends_holder_and_waiters(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = shared(&client, 9);
        let guard = soon(mutex.acquire()).await.unwrap();
        let waiting = waiters(&mutex, 3).await;
        let close = tokio::spawn(async move { client.close().await });
        assert_eq!(soon(guard.lost()).await, LostReason::Closed);
        for waiter in soon(join_all(waiting)).await {
            let Err(AcquireError::Core(error)) = waiter.unwrap() else { panic!("got a turn") };
            assert_eq!(error.kind(), ErrorKind::Closed);
        }
        drop(guard);
        soon(close).await.unwrap();
    }
}
