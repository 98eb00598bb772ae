//! A new leader waits if its predecessor did not resign.

use crate::candidate::{ELECTION, Log, until_candidates};
use docent::time::{BootClock, Clock, Timestamp};
use docent::{Client, CreateMode, Election, Error, ErrorKind};
use docent_battery::{Backend, Rule, ServerOptions, both_backends};
use docent_proto::{MultiOp, OpCode, Request};
use docent_tests::{builder, connect, in_time, soon};
use futures_util::poll;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

const DELAY: Duration = Duration::from_millis(1500);
/// Data of the election's node while no term with a takeover delay is in progress.
const RESIGNED: &str = "docent-term:none";
/// Child that keeps the servers from deleting an election's node that may be a container.
const KEEPER: &str = "docent-keeper";

/// A clock that is this number of seconds ahead.
#[derive(Debug, Clone, Default)]
struct Ahead(Arc<AtomicU64>);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        BootClock.now() + Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}

fn delayed(client: &Client) -> Election {
    Election::builder(client, ELECTION).takeover_delay(DELAY).term_interval(Duration::ZERO).build().unwrap()
}

/// Deletes the line with all its candidates, in one transaction.
async fn vanish(admin: &Client) {
    let mut vanish = admin.transaction();
    for node in soon(delayed(admin).candidates()).await.unwrap() {
        vanish = vanish.delete(&format!("{ELECTION}/{}", node.name), None);
    }
    vanish.delete(ELECTION, None).commit().await.unwrap();
}

both_backends! {
    async fn a_leader_begins_immediately_after_a_resignation_and_delayed_after_a_loss(backend: Backend) {
        let server = backend.start().await;
        let (first, second) = (connect(&server).await, connect(&server).await);
        in_time(DELAY, async || {
            let start = Instant::now();
            let leadership = soon(delayed(&first).campaign()).await.unwrap();
            soon(leadership.resign()).await.unwrap();
            assert_eq!(second.get(ELECTION).await.unwrap().data, RESIGNED);
            let leadership = soon(delayed(&second).campaign()).await.unwrap();
            let took = start.elapsed();
            soon(leadership.resign()).await.unwrap();
            took
        })
        .await;

        let leadership = soon(delayed(&second).campaign()).await.unwrap();
        server.expire(second.session_id().unwrap()).await.unwrap();
        soon(leadership.lost()).await;
        let lost = Instant::now();
        let campaign = tokio::spawn(delayed(&first).campaign());
        until_candidates(&delayed(&first), 1).await;
        assert!(!delayed(&first).is_leader());
        let leadership = soon(campaign).await.unwrap().unwrap();
        assert!(lost.elapsed() >= DELAY, "the work started {:?} after the loss", lost.elapsed());
        assert!(leadership.is_held());
    }

    async fn a_leader_lost_during_its_delay_does_no_work_and_campaigns_again(backend: Backend) {
        let server = backend.start().await;
        let (first, second) = (connect(&server).await, connect(&server).await);
        // The first leadership is lost, so the next leader waits.
        let lost = soon(delayed(&first).campaign()).await.unwrap();
        server.expire(first.session_id().unwrap()).await.unwrap();
        soon(lost.lost()).await;
        let log = Log::new();
        let _candidate = crate::candidate::Candidate::start(&delayed(&second), 0, &log);
        until_candidates(&delayed(&first), 1).await;
        let waiting = soon(delayed(&first).leader()).await.unwrap().unwrap();
        server.expire(waiting.session_id).await.unwrap();
        let (_, fence, _) = log.term(1).await;
        assert!(fence > waiting.fence, "the work does not start in a term that was lost before its start");
    }

    async fn a_term_is_kept_without_candidates_even_if_the_line_was_re_created(backend: Backend) {
        let server = backend.start().await;
        let (first, second) = (connect(&server).await, connect(&server).await);
        let leader = soon(delayed(&first).campaign()).await.unwrap();
        let campaign = tokio::spawn(delayed(&second).campaign());
        until_candidates(&delayed(&first), 2).await;
        vanish(&first).await;
        let leadership = soon(campaign).await.unwrap().unwrap();
        drop(leader);
        server.expire(second.session_id().unwrap()).await.unwrap();
        soon(leadership.lost()).await;
        // Ten times the interval in which servers delete empty containers.
        tokio::time::sleep(10 * ServerOptions::default().container_check_interval).await;
        let start = Instant::now();
        let _leads = soon(delayed(&first).campaign()).await.unwrap();
        assert!(start.elapsed() >= DELAY, "the lost term was forgotten");
    }

    async fn a_term_is_kept_without_candidates_even_in_a_container_that_predates_the_setting(backend: Backend) {
        let server = backend.start().await;
        let (first, second) = (connect(&server).await, connect(&server).await);
        let undelayed = soon(Election::new(&first, ELECTION).unwrap().campaign()).await.unwrap();
        let campaign = tokio::spawn(delayed(&second).campaign());
        until_candidates(&delayed(&first), 2).await;
        soon(undelayed.resign()).await.unwrap();
        let leadership = soon(campaign).await.unwrap().unwrap();
        server.expire(second.session_id().unwrap()).await.unwrap();
        soon(leadership.lost()).await;
        // Ten times the interval in which servers delete empty containers.
        tokio::time::sleep(10 * ServerOptions::default().container_check_interval).await;
        let start = Instant::now();
        let leads = soon(delayed(&first).campaign()).await.unwrap();
        assert!(start.elapsed() >= DELAY, "the lost term was forgotten");
        let names: Vec<_> = soon(delayed(&first).candidates()).await.unwrap();
        assert_eq!(names.len(), 1, "the keeper node is not a candidate");
        let error = soon(delayed(&first).reset()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotEmpty);
        assert!(first.children(ELECTION).await.unwrap().names.contains(&KEEPER.to_owned()));
        soon(leads.resign()).await.unwrap();
        soon(delayed(&first).reset()).await.unwrap();
        assert!(first.exists(ELECTION).await.unwrap().is_none());
    }

    async fn an_election_that_had_the_setting_from_the_start_has_only_candidates_in_its_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for _ in 0..2 {
            let leadership = soon(delayed(&client).campaign()).await.unwrap();
            let names = client.children(ELECTION).await.unwrap().names;
            assert!(names.len() == 1 && names[0].contains("-latch-"), "{names:?}");
            soon(leadership.resign()).await.unwrap();
        }
    }

    async fn a_leader_whose_line_vanishes_before_its_term_begins_campaigns_again(backend: Backend) {
        let server = backend.start().await;
        let (admin, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let node = format!("{}{ELECTION}", server.root());
        let reads = proxy.add(Rule::on(OpCode::GetData).path(move |path| path == node).hold());
        let campaign = tokio::spawn(delayed(&client).campaign());
        soon(reads.fired()).await;
        vanish(&admin).await;
        proxy.heal().await.unwrap();
        let leadership = soon(campaign).await.unwrap().unwrap();
        soon(leadership.verify()).await.unwrap();
    }

    async fn a_leader_whose_lease_expired_before_its_term_is_recorded_campaigns_again(backend: Backend) {
        let server = backend.start().await;
        let (proxy, clock) = (server.proxy().await, Ahead::default());
        let client = builder(&server, proxy.connect_string()).clock(clock.clone()).connect().await.unwrap();
        let terms = proxy.add(Rule::on(OpCode::Multi).when(|request| {
            matches!(request, Request::Multi(ops) if ops.iter().any(|op| matches!(op, MultiOp::SetData { .. })))
        }).hold());
        let campaign = tokio::spawn(delayed(&client).campaign());
        soon(terms.fired()).await;
        let first = soon(delayed(&connect(&server).await).leader()).await.unwrap().unwrap();
        // A session of 8 s has a lease of 5.3 s. After 6 s the servers still keep the session.
        clock.0.store(6, Ordering::SeqCst);
        proxy.heal().await.unwrap();
        let leadership = soon(campaign).await.unwrap().unwrap();
        assert!(leadership.fence() > first.fence, "a lost term was returned");
    }

    async fn a_leader_that_resigns_notifies_its_tasks_immediately_and_takes_one_round_trip(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let leadership = soon(delayed(&client).campaign()).await.unwrap();
        let token = leadership.token();
        // No request is answered until the held request is let through.
        let clears = proxy.add(Rule::on(OpCode::Multi).when(|request| {
            matches!(request, Request::Multi(ops) if ops.iter().any(|op| matches!(op, MultiOp::SetData { .. })))
        }).hold());
        let mut resigning = pin!(leadership.resign());
        assert!(poll!(&mut resigning).is_pending());
        assert!(token.is_cancelled());
        soon(clears.fired()).await;
        proxy.until(|trace| trace.iter().any(|frame| frame.is_request(OpCode::Delete))).await;
        proxy.heal().await.unwrap();
        soon(resigning).await.unwrap();
        assert_eq!(client.get(ELECTION).await.unwrap().data, RESIGNED);
    }

    async fn foreign_data_in_the_elections_node_is_not_overwritten(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create(ELECTION, "notes", CreateMode::Persistent).await.unwrap();
        let error = soon(delayed(&client).campaign()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("\"/election\" must hold nothing but"), "{error}");
        assert_eq!(client.get(ELECTION).await.unwrap().data, "notes");
        until_candidates(&delayed(&client), 0).await;
        // Without a takeover delay the node's data is not checked.
        let _leads = soon(Election::new(&client, ELECTION).unwrap().campaign()).await.unwrap();
    }

    async fn completed_work_counts_as_a_resignation(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        in_time(DELAY, async || {
            let (start, mut terms) = (Instant::now(), 0);
            let run = delayed(&client).run(move |_| {
                terms += 1;
                async move { if terms < 4 { Ok(()) } else { Err(Error::invalid_input("work", "enough")) } }
            });
            assert!(soon(run).await.is_err());
            start.elapsed()
        })
        .await;
    }
}
