//! Work that is told to stop, and gets time for it.

use crate::candidate::{ELECTION, until_standing};
use docent::{Client, Election, Error, Leadership, LostReason};
use docent_battery::{Backend, Proxy, TestServer, both_backends};
use docent_tests::{SHORT_SESSION, builder, connect, soon};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The margin of a session of 2 s is 0.67 s.
const GRACE: Duration = Duration::from_millis(600);

#[derive(Debug)]
enum Said {
    Leading,
    /// The token was cancelled.
    Told {
        lost: Option<LostReason>,
        at: Instant,
    },
    /// Its work to stop is done.
    Stopped,
    Dropped(Instant),
}

struct SayDropped(mpsc::UnboundedSender<Said>);

impl Drop for SayDropped {
    fn drop(&mut self) {
        let _ = self.0.send(Said::Dropped(Instant::now()));
    }
}

/// Waits to be told to stop, and takes so long for that.
async fn work(
    leadership: Leadership,
    takes: Duration,
    say: mpsc::UnboundedSender<Said>,
) -> Result<(), Error> {
    let _dropped = SayDropped(say.clone());
    let _ = say.send(Said::Leading);
    leadership.token().cancelled().await;
    let lost = if leadership.is_held() { None } else { Some(leadership.lost().await) };
    let _ = say.send(Said::Told { lost, at: Instant::now() });
    tokio::time::sleep(takes).await;
    let _ = say.send(Said::Stopped);
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
    async fn work_whose_lease_ran_out_is_told_first_and_dropped_when_its_grace_is_over(backend: Backend) {
        let server = backend.start().await;
        let (_client, proxy, election) = candidate(&server).await;
        let (say, mut said) = mpsc::unbounded_channel();
        let run = tokio::spawn(election.run(move |leadership| work(leadership, GRACE / 6, say.clone())));
        assert!(matches!(soon(said.recv()).await, Some(Said::Leading)));
        proxy.blackhole();
        let Some(Said::Told { lost, at }) = soon(said.recv()).await else { panic!("it was not told") };
        assert_eq!(lost, Some(LostReason::LeaseExpired));
        assert!(matches!(soon(said.recv()).await, Some(Said::Stopped)), "it is polled meanwhile");
        let Some(Said::Dropped(dropped)) = soon(said.recv()).await else { panic!("it was not dropped") };
        assert!(dropped - at < GRACE + Duration::from_millis(100), "it went on for {:?}", dropped - at);
        // It leads again afterwards.
        proxy.heal().await.unwrap();
        proxy.reset().await;
        assert!(matches!(soon(said.recv()).await, Some(Said::Leading)));
        run.abort();
    }

    async fn there_is_no_grace_when_somebody_else_may_lead_already(backend: Backend) {
        let server = backend.start().await;
        let (client, _proxy, election) = candidate(&server).await;
        let (say, mut said) = mpsc::unbounded_channel();
        let run = tokio::spawn(election.run(move |leadership| work(leadership, Duration::ZERO, say.clone())));
        assert!(matches!(soon(said.recv()).await, Some(Said::Leading)));
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert!(matches!(soon(said.recv()).await, Some(Said::Dropped(_))), "it is not polled any more");
        run.abort();
    }

    async fn a_grace_is_not_cut_short_by_a_shutdown(backend: Backend) {
        let server = backend.start().await;
        let (_client, proxy, election) = candidate(&server).await;
        let ((say, mut said), shutdown) = (mpsc::unbounded_channel(), CancellationToken::new());
        let run = election.run(move |leadership| work(leadership, GRACE / 3, say.clone()));
        let run = tokio::spawn(run.until(shutdown.clone().cancelled_owned()));
        assert!(matches!(soon(said.recv()).await, Some(Said::Leading)));
        proxy.blackhole();
        assert!(matches!(soon(said.recv()).await, Some(Said::Told { lost: Some(LostReason::LeaseExpired), .. })));
        shutdown.cancel();
        assert!(matches!(soon(said.recv()).await, Some(Said::Stopped)), "it was dropped when it was shut down");
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
                Err(Error::invalid_input("work", "it came to its end"))
            }
        });
        let stop = async {
            soon(resigned.cancelled()).await;
            shutdown.cancel();
        };
        let error = soon(run.until(stop)).await.unwrap_err();
        assert!(error.to_string().contains("it came to its end"));
    }

    async fn work_that_is_shut_down_is_told_first_and_still_leads_while_it_stops(backend: Backend) {
        let server = backend.start().await;
        let (_client, _proxy, election) = candidate(&server).await;
        for takes in [Duration::ZERO, Duration::from_secs(60)] {
            let ((say, mut said), shutdown) = (mpsc::unbounded_channel(), CancellationToken::new());
            let run = election.run(move |leadership| work(leadership, takes, say.clone()));
            let run = tokio::spawn(run.until(shutdown.clone().cancelled_owned()));
            assert!(matches!(soon(said.recv()).await, Some(Said::Leading)));
            shutdown.cancel();
            let Some(Said::Told { lost: None, at }) = soon(said.recv()).await else { panic!("it still leads") };
            soon(run).await.unwrap().unwrap();
            assert_eq!(matches!(said.recv().await, Some(Said::Stopped)), takes.is_zero());
            assert!(at.elapsed() >= GRACE);
            until_standing(&election, 0).await;
        }
    }

    async fn an_error_while_it_is_shut_down_is_returned(backend: Backend) {
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
                Err(Error::invalid_input("work", "it could not be put away"))
            }
        });
        let run = tokio::spawn(run.until(shutdown.clone().cancelled_owned()));
        soon(leading.cancelled()).await;
        shutdown.cancel();
        assert!(soon(run).await.unwrap().unwrap_err().to_string().contains("could not be put away"));
        until_standing(&election, 0).await;
    }
}
