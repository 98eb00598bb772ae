//! Shutdowns that ask for guards before they take them away, concurrent calls of `shutdown`, and dropped
//! calls.

use docent::client::ShutdownReport;
use docent::{ConnectionState, Election, LostReason, Mutex, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{PATIENCE, connect, soon, until};
use futures_util::poll;
use std::time::Duration;
use tokio::time::Instant;

fn kinds(report: &ShutdownReport) -> Vec<&str> {
    report.held_on.iter().map(|node| node.kind).collect()
}

both_backends! {
    async fn a_guard_that_is_not_released_is_lost_before_the_next_holder_and_is_named(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let path = guard.path();
        let next = Mutex::new(&other, "/lock").unwrap();
        let waiting = tokio::spawn(next.acquire());
        until(async || next.participants().await.unwrap().len() == 2).await;
        let mut shutdown = Box::pin(client.shutdown(Duration::from_secs(2)));
        assert!(poll!(shutdown.as_mut()).is_pending());
        soon(guard.revoked()).await;
        assert!(guard.is_held() && soon(guard.verify()).await.is_ok(), "the guard is asked for, and still held");
        let report = soon(shutdown).await;
        assert_eq!(guard.lost().await, LostReason::Closed);
        let _next = soon(waiting).await.unwrap().unwrap();
        assert_eq!((kinds(&report), &report.held_on[0].path), (vec!["mutex"], &path));
        assert!(report.left.is_empty() && report.took < Duration::from_secs(2), "{report}");
    }

    async fn an_item_in_progress_is_given_back_at_the_deadline(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let queue = Queue::<String>::new(&client, "/jobs").unwrap();
        soon(queue.put(&"one".to_owned())).await.unwrap();
        let delivery = soon(queue.take()).await.unwrap();
        let waiting = tokio::spawn(queue.take());
        let working = tokio::spawn(async move { delivery.run(std::future::pending::<()>()).await });
        let report = soon(client.shutdown(Duration::from_secs(2))).await;
        assert_eq!(kinds(&report), ["queue"], "{report}");
        assert_eq!(soon(working).await.unwrap().unwrap_err().reason, LostReason::Closed);
        assert!(soon(waiting).await.unwrap().is_err());
        let again = soon(Queue::<String>::new(&other, "/jobs").unwrap().take()).await.unwrap();
        assert_eq!(again.item(), "one");
    }

    async fn of_several_shutdowns_the_earliest_deadline_counts_and_all_report_the_same(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let first = tokio::spawn(client.clone().shutdown(PATIENCE * 10));
        soon(guard.revoked()).await;
        let second = soon(client.clone().shutdown(Duration::from_millis(600))).await;
        let (first, third) = (soon(first).await.unwrap(), soon(client.shutdown(PATIENCE)).await);
        assert_eq!((&first.left, &first.held_on), (&second.left, &second.held_on));
        assert_eq!((&third.left, &third.held_on), (&second.left, &second.held_on));
        assert_eq!(kinds(&first), ["mutex"]);
    }

    async fn a_shutdown_continues_when_its_future_is_dropped_at_any_moment(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        for polls in 1..4 {
            let client = connect(&server).await;
            let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
            let mut shutdown = Box::pin(client.shutdown(PATIENCE));
            for _ in 0..polls {
                if poll!(shutdown.as_mut()).is_ready() {
                    break;
                }
                docent_tests::pause().await;
            }
            drop(shutdown);
            soon(guard.revoked()).await;
            drop(guard);
            soon(client.state().reached(ConnectionState::Closed)).await;
            other.sync("/").await.unwrap();
            assert_eq!(Mutex::new(&other, "/lock").unwrap().participants().await.unwrap(), []);
        }
    }

    async fn a_client_that_is_dropped_or_closed_meanwhile_skips_the_rest(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mutex = Mutex::new(&client, "/lock").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let shutdown = tokio::spawn(client.shutdown(PATIENCE * 10));
        soon(guard.revoked()).await;
        soon(client.close()).await;
        assert!(!guard.is_held());
        assert!(soon(shutdown).await.unwrap().left.is_empty());
    }

    async fn a_shutdown_without_time_closes_immediately(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let guard = soon(Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
        let began = Instant::now();
        let report = soon(client.shutdown(Duration::ZERO)).await;
        assert!(began.elapsed() < Duration::from_secs(1) && !guard.is_held(), "{report}");
        assert_eq!(report.left.iter().map(|node| node.kind).collect::<Vec<_>>(), ["mutex"]);
        assert!(soon(client.get("/")).await.is_err());
        soon(client.close()).await;
    }

    async fn a_candidate_leaves_the_line_and_a_consumer_in_order_its_lock(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _leader = soon(Election::new(&other, "/election").unwrap().campaign()).await.unwrap();
        let election = Election::new(&client, "/election").unwrap();
        let run = election.run(|_| async { Ok::<_, docent::Error>(()) });
        let candidate = tokio::spawn(run);
        let queue = Queue::<String>::builder(&client, "/jobs").ordered().build().unwrap();
        let consumer = tokio::spawn(queue.take());
        until(async || other.children("/election").await.unwrap().names.len() == 2).await;
        until(async || client.health().guards == 1).await;
        let report = soon(client.shutdown(PATIENCE)).await;
        assert!(report.is_clean(), "no hold was in the way of the shutdown: {report}");
        assert!(soon(candidate).await.unwrap().is_ok() && soon(consumer).await.unwrap().is_err());
        other.sync("/election").await.unwrap();
        assert_eq!(other.children("/election").await.unwrap().names.len(), 1);
    }

    async fn a_closed_client_has_nothing_to_end(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(client.close()).await;
        assert!(soon(client.shutdown(PATIENCE)).await.is_clean());
    }
}
