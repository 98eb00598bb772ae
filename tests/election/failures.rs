//! Work that fails, and a run that continues.

use docent::{Client, Election, Error, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_tests::{SESSION, builder, connect, soon, within};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn named(client: &Client, id: &str) -> Election {
    Election::builder(client, "/election").id(id).build().unwrap()
}

fn failed() -> Error {
    Error::invalid_input("work", "it fails")
}

both_backends! {
    async fn a_run_that_retries_failures_leads_again_after_its_work_failed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (terms, stop) = (AtomicUsize::new(0), CancellationToken::new());
        let work = |leadership: docent::Leadership| {
            let (term, stop) = (terms.fetch_add(1, Ordering::SeqCst), stop.clone());
            async move {
                assert!(leadership.is_held());
                if term < 2 {
                    return Err(failed());
                }
                stop.cancel();
                Ok(())
            }
        };
        soon(named(&client, "a").run(work).retry_failures().until(stop.cancelled())).await.unwrap();
        assert_eq!(terms.load(Ordering::SeqCst), 3);
        let once = named(&client, "a").run(|_leadership| async { Err::<(), _>(failed()) });
        assert_eq!(soon(once).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    async fn another_candidate_leads_while_a_failed_one_pauses(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let failed_once = CancellationToken::new();
        let run = named(&client, "a").run(|_leadership| {
            failed_once.cancel();
            async { Err::<(), _>(failed()) }
        });
        let others = async {
            failed_once.cancelled().await;
            soon(named(&other, "b").campaign()).await.unwrap()
        };
        let leads = tokio::select! {
            ended = run.retry_failures() => panic!("{ended:?}"),
            leads = others => leads,
        };
        assert!(leads.is_held());
    }

    async fn a_run_that_is_stopped_in_its_pause_ends_immediately(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        // The fourth pause takes 8 s.
        let (terms, stop) = (AtomicUsize::new(0), CancellationToken::new());
        let work = |_leadership| {
            if terms.fetch_add(1, Ordering::SeqCst) == 3 {
                stop.cancel();
            }
            async { Err::<(), _>(failed()) }
        };
        let run = named(&client, "a").run(work).retry_failures();
        let stopped = async {
            stop.cancelled().await;
            docent_tests::pause().await;
        };
        let started = tokio::time::Instant::now();
        soon(run.until(stopped)).await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
        assert_eq!(terms.load(Ordering::SeqCst), 4);
    }

    async fn work_whose_write_fails_in_an_outage_is_done_again_afterwards(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(SESSION)
            .operation_timeout(Duration::from_millis(300)).connect().await.unwrap();
        let (failures, stop) = (AtomicUsize::new(0), CancellationToken::new());
        proxy.heal().await.unwrap();
        let work = |_leadership| async {
            if failures.load(Ordering::SeqCst) == 0 {
                proxy.cut().await;
            }
            let written = client.create_or_set("/written", "", docent::CreateMode::Persistent).await;
            if let Err(error) = written {
                failures.fetch_add(1, Ordering::SeqCst);
                proxy.heal().await.unwrap();
                return Err(error);
            }
            stop.cancel();
            Ok(())
        };
        let run = named(&client, "a").run(work).retry_failures().until(stop.cancelled());
        soon(run).await.unwrap();
        assert_eq!(failures.load(Ordering::SeqCst), 1);
    }

    async fn a_permanent_error_of_the_election_ends_a_run_that_retries_failures(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let election: Election = named(&client, "a");
        let run = election.run(|_leadership| async { Err::<(), _>(failed()) }).retry_failures();
        let close = async {
            docent_tests::pause().await;
            client.close().await;
        };
        let (ended, ()) = within(Duration::from_secs(20), async { tokio::join!(run, close) }).await;
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Closed);
    }
}
