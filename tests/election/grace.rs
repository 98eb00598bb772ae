//! Work that is asked to stop and gets time for it.

use crate::candidate::{ELECTION, until_candidates};
use docent::{Client, Election, Error, Leadership, LostReason};
use docent_battery::{Backend, Proxy, TestServer, both_backends};
use docent_tests::{SHORT_SESSION, builder, connect, soon};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Shorter than the margin of a session of 2 s, which is 0.67 s.
const GRACE: Duration = Duration::from_millis(600);

#[derive(Debug)]
enum WorkEvent {
    Leading,
    /// The work's token was cancelled.
    Notified {
        lost: Option<LostReason>,
        at: Instant,
    },
    /// The work has stopped.
    Stopped,
    Dropped(Instant),
}

struct ReportDrop(mpsc::UnboundedSender<WorkEvent>);

impl Drop for ReportDrop {
    fn drop(&mut self) {
        let _ = self.0.send(WorkEvent::Dropped(Instant::now()));
    }
}

/// Waits until it is asked to stop, and takes `takes` to stop.
async fn work(
    leadership: Leadership,
    takes: Duration,
    report: mpsc::UnboundedSender<WorkEvent>,
) -> Result<(), Error> {
    let _dropped = ReportDrop(report.clone());
    let _ = report.send(WorkEvent::Leading);
    leadership.token().cancelled().await;
    let lost = if leadership.is_held() { None } else { Some(leadership.lost().await) };
    let _ = report.send(WorkEvent::Notified { lost, at: Instant::now() });
    tokio::time::sleep(takes).await;
    let _ = report.send(WorkEvent::Stopped);
    std::future::pending().await
}

async fn candidate(server: &TestServer) -> (Client, Proxy, Election) {
    let proxy = server.proxy().await;
    let client =
        builder(server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
    let election = Election::builder(&client, ELECTION).grace(GRACE).build().unwrap();
    (client, proxy, election)
}

both_backends! {
    async fn work_whose_lease_ran_out_is_notified_first_and_dropped_after_its_grace(backend: Backend) {
        let server = backend.start().await;
        let (_client, proxy, election) = candidate(&server).await;
        let (report, mut events) = mpsc::unbounded_channel();
        let run = tokio::spawn(election.run(move |leadership| work(leadership, GRACE / 6, report.clone())));
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Leading)));
        proxy.blackhole();
        let Some(WorkEvent::Notified { lost, at }) = soon(events.recv()).await else { panic!("the work was not asked to stop") };
        assert_eq!(lost, Some(LostReason::LeaseExpired));
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Stopped)), "the work is polled while it stops");
        let Some(WorkEvent::Dropped(dropped)) = soon(events.recv()).await else { panic!("the work was not dropped") };
        assert!(dropped - at < GRACE + Duration::from_millis(100), "the work ran on for {:?}", dropped - at);
        // The candidate leads again afterwards.
        proxy.heal().await.unwrap();
        proxy.reset().await;
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Leading)));
        run.abort();
    }

    async fn there_is_no_grace_if_another_candidate_may_already_lead(backend: Backend) {
        let server = backend.start().await;
        let (client, _proxy, election) = candidate(&server).await;
        let (report, mut events) = mpsc::unbounded_channel();
        let run = tokio::spawn(election.run(move |leadership| work(leadership, Duration::ZERO, report.clone())));
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Leading)));
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Dropped(_))), "the work is no longer polled");
        run.abort();
    }

    async fn a_grace_is_not_cut_short_by_a_shutdown(backend: Backend) {
        let server = backend.start().await;
        let (_client, proxy, election) = candidate(&server).await;
        let ((report, mut events), shutdown) = (mpsc::unbounded_channel(), CancellationToken::new());
        let run = election.run(move |leadership| work(leadership, GRACE / 3, report.clone()));
        let run = tokio::spawn(run.until(shutdown.clone().cancelled_owned()));
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Leading)));
        proxy.blackhole();
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Notified { lost: Some(LostReason::LeaseExpired), .. })));
        shutdown.cancel();
        assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Stopped)), "the work was dropped at the shutdown");
        soon(run).await.unwrap().unwrap();
    }

    async fn work_that_has_resigned_gets_its_grace_when_it_is_shut_down(backend: Backend) {
        let server = backend.start().await;
        let (_client, _proxy, election) = candidate(&server).await;
        let (resigned, shutdown) = (CancellationToken::new(), CancellationToken::new());
        let run = election.run(|leadership| {
            let (resigned, shutdown) = (resigned.clone(), shutdown.clone());
            async move {
                leadership.resign().await?;
                resigned.cancel();
                shutdown.cancelled().await;
                tokio::time::sleep(GRACE / 6).await;
                Err::<(), _>(Error::invalid_input("work", "the work reached its end"))
            }
        });
        let stop = async {
            soon(resigned.cancelled()).await;
            shutdown.cancel();
        };
        let error = soon(run.until(stop)).await.unwrap_err();
        assert!(error.to_string().contains("the work reached its end"));
    }

    async fn work_that_is_shut_down_is_notified_first_and_still_leads_while_it_stops(backend: Backend) {
        let server = backend.start().await;
        let (_client, _proxy, election) = candidate(&server).await;
        for takes in [Duration::ZERO, Duration::from_secs(60)] {
            let ((report, mut events), shutdown) = (mpsc::unbounded_channel(), CancellationToken::new());
            let run = election.run(move |leadership| work(leadership, takes, report.clone()));
            let run = tokio::spawn(run.until(shutdown.clone().cancelled_owned()));
            assert!(matches!(soon(events.recv()).await, Some(WorkEvent::Leading)));
            shutdown.cancel();
            let Some(WorkEvent::Notified { lost: None, at }) = soon(events.recv()).await else { panic!("the candidate no longer leads") };
            soon(run).await.unwrap().unwrap();
            assert_eq!(matches!(events.recv().await, Some(WorkEvent::Stopped)), takes.is_zero());
            assert!(at.elapsed() >= GRACE);
            until_candidates(&election, 0).await;
        }
    }

    async fn an_error_of_work_that_is_shut_down_is_returned(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (shutdown, leading) = (CancellationToken::new(), CancellationToken::new());
        let election = Election::builder(&client, ELECTION).grace(Duration::from_secs(2)).build().unwrap();
        let leads = leading.clone();
        let run = election.run(move |leadership| {
            let leads = leads.clone();
            async move {
                leads.cancel();
                leadership.token().cancelled().await;
                Err::<(), _>(Error::invalid_input("work", "the work could not be stopped"))
            }
        });
        let run = tokio::spawn(run.until(shutdown.clone().cancelled_owned()));
        soon(leading.cancelled()).await;
        shutdown.cancel();
        assert!(soon(run).await.unwrap().unwrap_err().to_string().contains("could not be stopped"));
        until_candidates(&election, 0).await;
    }
}
