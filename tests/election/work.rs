//! Work bound to a leadership, and what happens after it ends.

use crate::candidate::{Candidate, ELECTION, Log, election, until_candidates};
use docent::time::{BootClock, Clock, Timestamp};
use docent::{Election, Error, ErrorKind, LostReason};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, soon};
use futures_util::future::join_all;
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A service's own error type.
#[derive(Debug)]
enum Failure {
    Work(u32),
    Election(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Election(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

both_backends! {
    async fn completed_work_lets_the_candidates_lead_in_rotation(backend: Backend) {
        const CANDIDATES: usize = 3;
        let server = backend.start().await;
        let clients = join_all((0..CANDIDATES).map(|_| connect(&server))).await;
        let (log, mut candidates) = (Log::new(), Vec::new());
        let (pass, baton) = mpsc::unbounded_channel::<()>();
        let baton = Arc::new(tokio::sync::Mutex::new(baton));
        for (number, client) in clients.iter().enumerate() {
            let baton = Arc::clone(&baton);
            candidates.push(Candidate::with(&election(client), number, &log, move |_| {
                let baton = Arc::clone(&baton);
                async move {
                    baton.lock().await.recv().await;
                    Ok(())
                }
            }));
            until_candidates(&election(client), number + 1).await;
        }
        for term in 1..=4 * CANDIDATES {
            log.term(term).await;
            // Waits until all candidates are in the line again before the next term ends.
            until_candidates(&election(&clients[0]), CANDIDATES).await;
            pass.send(()).unwrap();
        }
        let terms: Vec<_> = log.terms().into_iter().take(4 * CANDIDATES).map(|(number, ..)| number).collect();
        let rotation: Vec<_> = (0..CANDIDATES).cycle().take(4 * CANDIDATES).collect();
        assert_eq!(terms, rotation);
    }

    async fn work_that_fails_ends_the_run_with_its_error_and_resigns(backend: Backend) {
        let server = backend.start().await;
        let election = election(&connect(&server).await);
        let mut terms = 0;
        let run = election.run(|_| {
            terms += 1;
            async move { if terms < 3 { Ok(()) } else { Err(Failure::Work(terms)) } }
        });
        assert!(matches!(soon(run).await, Err(Failure::Work(3))));
        assert_eq!(terms, 3);
        assert_eq!(soon(election.candidates()).await.unwrap(), [], "the call returned before the delete was applied");
    }

    async fn work_that_returns_immediately_gets_one_term_a_second(backend: Backend) {
        let server = backend.start().await;
        let election = Election::new(&connect(&server).await, "/election").unwrap();
        let mut terms = Vec::new();
        let run = election.run(|_| {
            terms.push(Instant::now());
            let count = terms.len();
            async move { if count < 3 { Ok(()) } else { Err(Failure::Work(3)) } }
        });
        assert!(matches!(soon(run).await, Err(Failure::Work(3))));
        assert!(terms.windows(2).all(|two| two[1] - two[0] >= Duration::from_secs(1)), "{terms:?}");
    }

    async fn an_error_of_the_campaign_is_converted_to_the_works_error(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let run = election(&client).run(|_| pending::<Result<(), Failure>>());
        let run = tokio::spawn(run);
        until_candidates(&election(&client), 1).await;
        soon(client.close()).await;
        let error = soon(run).await.unwrap().unwrap_err();
        assert!(matches!(&error, Failure::Election(error) if error.kind() == ErrorKind::Closed), "{error}");
    }

    async fn work_that_never_ends_or_cannot_fail_needs_no_annotation(backend: Backend) {
        let server = backend.start().await;
        let election = election(&connect(&server).await);
        let (led, mut terms) = mpsc::unbounded_channel();
        let endless = election.run(|leadership| {
            let led = led.clone();
            async move {
                loop {
                    led.send(leadership.fence()).unwrap();
                    docent_tests::pause().await;
                }
            }
        });
        soon(endless.until(terms.recv())).await.unwrap();
        while terms.try_recv().is_ok() {}
        let infallible = election.run(|leadership| {
            let led = led.clone();
            async move { led.send(leadership.fence()).unwrap() }
        });
        soon(infallible.until(terms.recv())).await.unwrap();
        // The result of the last call of the work need not be `()`.
        let resigning = election.run(|leadership| {
            led.send(leadership.fence()).unwrap();
            async move { leadership.resign().await }
        });
        soon(resigning.until(terms.recv())).await.unwrap();
        until_candidates(&election, 0).await;
    }

    async fn work_that_panics_resigns_and_the_panic_propagates(backend: Backend) {
        let server = backend.start().await;
        let election = election(&connect(&server).await);
        for in_the_closure in [true, false] {
            let run = tokio::spawn(election.run(move |_| {
                assert!(!in_the_closure, "planned in the closure");
                async move {
                    docent_tests::pause().await;
                    if !in_the_closure { panic!("planned in the work") }
                    Ok::<(), Error>(())
                }
            }));
            let panic = soon(run).await.unwrap_err().into_panic();
            assert!(panic.downcast_ref::<&str>().unwrap().contains("planned"));
            until_candidates(&election, 0).await;
        }
    }

    async fn a_run_that_is_dropped_drops_the_work_before_it_resigns(backend: Backend) {
        let server = backend.start().await;
        let (client, next) = (connect(&server).await, connect(&server).await);
        let log = Log::new();
        let run = tokio::spawn({
            let log = log.clone();
            election(&client).run(move |leadership| {
                let noted = log.term_of(0, &leadership);
                async move {
                    let _noted = noted;
                    pending::<Result<(), Error>>().await
                }
            })
        });
        log.term(1).await;
        let _next = Candidate::start(&election(&next), 1, &log);
        until_candidates(&election(&next), 2).await;
        run.abort();
        log.term(2).await;
        let order: Vec<_> = log.all().into_iter().map(|(number, ..)| number).collect();
        assert_eq!(order, [0, 0, 1]);
    }

    async fn a_waiting_candidate_that_is_stopped_or_dropped_leaves_the_line(backend: Backend) {
        let server = backend.start().await;
        let election = election(&connect(&server).await);
        let leadership = soon(election.campaign()).await.unwrap();
        let log = Log::new();
        let candidate = Candidate::start(&election, 0, &log);
        until_candidates(&election, 2).await;
        candidate.stop().await.unwrap();
        until_candidates(&election, 1).await;
        let run = tokio::spawn(election.run(|_| pending::<Result<(), Error>>()));
        until_candidates(&election, 2).await;
        run.abort();
        until_candidates(&election, 1).await;
        assert!(leadership.is_held());
        assert_eq!(log.all(), []);
        // A run that was shut down before its start does not join the line.
        let run = election.run(|_| async { unreachable!("the run was shut down") });
        soon(run.until(async {})).await.map_err(|error: Error| error).unwrap();
    }

    async fn the_term_ends_with_the_work_even_if_the_leadership_is_kept(backend: Backend) {
        let server = backend.start().await;
        let election = election(&connect(&server).await);
        let (kept, mut keeper) = mpsc::unbounded_channel();
        let mut terms = 0;
        let run = election.run(|leadership| {
            terms += 1;
            kept.send(leadership).unwrap();
            async move { if terms < 3 { Ok(()) } else { Err(Failure::Work(0)) } }
        });
        assert!(matches!(soon(run).await, Err(Failure::Work(0))));
        for _ in 0..3 {
            let leadership = keeper.try_recv().unwrap();
            assert!(!leadership.is_held() && leadership.token().is_cancelled());
            assert_eq!(soon(leadership.lost()).await, LostReason::Released);
            assert_eq!(leadership.run(async {}).await.unwrap_err().reason, LostReason::Released);
            assert_eq!(soon(leadership.verify()).await.unwrap_err().kind(), ErrorKind::Lost(LostReason::Released));
            assert!(soon(leadership.resign()).await.unwrap_err().is_lost());
        }
        until_candidates(&election, 0).await;
    }

    async fn work_that_resigns_runs_to_completion_and_then_campaigns_again(backend: Backend) {
        let server = backend.start().await;
        let (client, next) = (connect(&server).await, connect(&server).await);
        let (resigned, resumed) = (Arc::new(Mutex::new(None)), CancellationToken::new());
        let (signal, signalled) = oneshot::channel();
        *resigned.lock().unwrap() = Some(signal);
        let stop = CancellationToken::new();
        let run = tokio::spawn({
            let resumed = resumed.clone();
            election(&client).run(move |leadership| {
                let (signal, resumed) = (resigned.lock().unwrap().take(), resumed.clone());
                async move {
                    leadership.resign().await?;
                    if let Some(signal) = signal {
                        signal.send(()).unwrap();
                        resumed.cancelled().await;
                        return Ok(());
                    }
                    Err(Failure::Work(2))
                }
            }).until(stop.cancelled_owned())
        });
        soon(signalled).await.unwrap();
        let leadership = soon(election(&next).campaign()).await.unwrap();
        assert_eq!(soon(election(&next).candidates()).await.unwrap().len(), 1, "a run is not a candidate while its work continues");
        resumed.cancel();
        until_candidates(&election(&next), 2).await;
        soon(leadership.resign()).await.unwrap();
        assert!(matches!(soon(run).await.unwrap(), Err(Failure::Work(2))));
    }

    async fn a_run_can_be_awaited_without_spawning_and_its_work_may_borrow(backend: Backend) {
        let server = backend.start().await;
        let election = Election::new(&connect(&server).await, ELECTION).unwrap();
        let terms = std::cell::Cell::new(0);
        let run = election.run(|leadership| {
            let terms = &terms;
            async move {
                terms.set(terms.get() + 1);
                if terms.get() == 2 { leadership.lost().await; }
                Ok::<(), Error>(())
            }
        });
        let enough = async {
            while terms.get() < 2 {
                docent_tests::pause().await;
            }
        };
        soon(run.until(enough)).await.unwrap();
        assert_eq!(terms.get(), 2);
        until_candidates(&election, 0).await;
    }
}

/// A clock that jumps ahead at a certain reading, as after the machine was suspended: past the end of a lease
/// of 5.3 s, by less than a grace.
#[derive(Debug, Clone, Default)]
struct Jumps(Arc<ReadCount>);

#[derive(Debug, Default)]
struct ReadCount {
    count: AtomicUsize,
    /// Number of the first reading that is ahead, or 0 for none.
    ahead: AtomicUsize,
}

impl Jumps {
    fn reads(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// Returns true if an earlier reading was already ahead.
    fn has_jumped(&self) -> bool {
        (1..=self.reads()).contains(&self.0.ahead.load(Ordering::SeqCst))
    }
}

impl Clock for Jumps {
    fn now(&self) -> Timestamp {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        let ahead = if self.has_jumped() { Duration::from_secs(6) } else { Duration::ZERO };
        BootClock.now() + ahead
    }
}

#[tokio::test(start_paused = true)]
async fn work_does_not_begin_in_a_term_that_is_already_lost() {
    let server = Backend::Memory.start().await;
    for later in 1..=40 {
        let clock = Jumps::default();
        let client = builder(&server, server.connect_string()).clock(clock.clone()).connect().await.unwrap();
        let begun = CancellationToken::new();
        clock.0.ahead.store(clock.reads() + later, Ordering::SeqCst);
        let election = Election::builder(&client, ELECTION).grace(Duration::from_secs(2)).build().unwrap();
        let run = election.run(|leadership| {
            let had_jumped = clock.has_jumped();
            assert!(
                leadership.is_held() || !had_jumped,
                "the work started although the leadership was lost {later} readings after the start"
            );
            begun.cancel();
            async move {
                leadership.token().cancelled().await;
                Ok::<(), Error>(())
            }
        });
        let mut state = client.state();
        let shutdown = async {
            tokio::select! {
                () = begun.cancelled() => {}
                _ = state.wait_for(|connection| connection.suspensions > 0 || connection.generation > 1) => {}
            }
        };
        soon(run.until(shutdown)).await.unwrap();
    }
}
