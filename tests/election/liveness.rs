//! A new leader follows soon after the previous leader ends, and no candidate silently drops out.

use crate::candidate::{Candidate, ELECTION, Log, election, until_candidates};
use docent::node::Acl;
use docent::{CreateMode, Election, ErrorKind, LostReason, Released};
use docent_battery::battery::longest_pause;
use docent_battery::{Backend, Direction, FrameKind, TestServer, Traced, both_backends_in_real_time};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, builder, connect, in_time, soon, tick};
use futures_util::future::join_all;
use std::collections::HashSet;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// Returns the time limit for another candidate to lead after the leader failed.
fn takeover_limit() -> Duration {
    SHORT_SESSION + 2 * tick()
}

/// Starts a process that leads, with a short session.
fn leader(server: &TestServer) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leader"));
    command.args([&server.connect_string(), server.root()]);
    command.args([SHORT_SESSION, tick()].map(|time| time.as_millis().to_string())).arg(ELECTION);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

both_backends_in_real_time! {
    async fn the_next_leads_within_a_second_of_a_resignation_a_drop_or_a_close(backend: Backend) {
        let server = backend.start().await;
        let next = connect(&server).await;
        for way in 0..3 {
            in_time(Duration::from_secs(1), async || {
                let client = connect(&server).await;
                let leadership = soon(election(&client).campaign()).await.unwrap();
                let campaign = tokio::spawn(election(&next).campaign());
                until_candidates(&election(&next), 2).await;
                let released = Instant::now();
                match way {
                    0 => assert_eq!(soon(leadership.resign()).await.unwrap(), Released::Done),
                    1 => drop(leadership),
                    // The work under the leadership stops as soon as the leadership is lost.
                    _ => drop(tokio::join!(soon(client.close()), async { drop((leadership.lost().await, leadership)) })),
                }
                let leads = soon(campaign).await.unwrap().unwrap();
                let took = released.elapsed();
                soon(leads.resign()).await.unwrap();
                took
            })
            .await;
        }
    }

    async fn the_next_leads_within_a_timeout_and_two_ticks_of_a_failure_and_not_before_the_leader_knows(backend: Backend) {
        let server = backend.start().await;
        let next = connect(&server).await;
        in_time(takeover_limit(), async || {
            let proxy = server.proxy().await;
            let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
            let log = Log::new();
            let _first = Candidate::start(&election(&client), 0, &log);
            log.term(1).await;
            let second = Candidate::start(&election(&next), 1, &log);
            until_candidates(&election(&next), 2).await;
            let failed = Instant::now();
            proxy.blackhole();
            let ((leader, _, at), pause) = longest_pause(log.term(2)).await;
            assert_eq!(leader, 1);
            let all = log.all();
            let ended = all.iter().find(|(number, event, _)| *number == 0 && matches!(event, crate::candidate::Event::Ended(_)));
            // If the process was paused from before the end of the lease until after the end of the session,
            // both events are reported at the same time.
            let notified_first = ended.is_some_and(|(_, _, ended)| *ended < at);
            assert!(notified_first || pause > SHORT_SESSION / 4, "the work of the first leader continued");
            second.stop().await.unwrap();
            at - failed
        })
        .await;
    }

    async fn the_next_leads_within_a_timeout_and_two_ticks_when_the_leaders_process_is_killed(backend: Backend) {
        let server = backend.start().await;
        let next = connect(&server).await;
        in_time(takeover_limit(), async || {
            let mut process = leader(&server);
            let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
            assert_eq!(soon(lines.next_line()).await.unwrap().as_deref(), Some("held"));
            let campaign = tokio::spawn(election(&next).campaign());
            until_candidates(&election(&next), 2).await;
            process.kill().await.unwrap();
            let killed = Instant::now();
            let leads = soon(campaign).await.unwrap().unwrap();
            let took = killed.elapsed();
            soon(leads.resign()).await.unwrap();
            took
        })
        .await;
    }

    async fn a_candidate_campaigns_again_after_an_outage_longer_than_the_operation_timeout(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string())
            .session_timeout(SHORT_SESSION)
            .operation_timeout(Duration::from_millis(300))
            .connect().await.unwrap();
        let log = Log::new();
        let candidate = Candidate::start(&election(&client), 0, &log);
        let (_, fence, _) = log.term(1).await;
        proxy.cut().await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        // The length of this outage is the subject of the test.
        tokio::time::sleep(SHORT_SESSION + Duration::from_secs(1)).await;
        assert_eq!(log.all().len(), 2, "the work was dropped");
        proxy.heal().await.unwrap();
        let (_, again, _) = log.term(2).await;
        assert!(again > fence);
        candidate.stop().await.unwrap();
    }

    async fn a_candidate_without_permission_gets_an_error(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create(ELECTION, "", CreateMode::Persistent).await.unwrap();
        client.set_acl(ELECTION, [Acl::read_all()], None).await.unwrap();
        let error = soon(election(&client).campaign()).await.unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some(ELECTION)));
        let log = Log::new();
        assert_eq!(Candidate::start(&election(&client), 0, &log).ends().await.unwrap_err().kind(), ErrorKind::NoAuth);
        assert_eq!(log.all(), []);
        // The same holds below a node in which nothing may be created.
        let below = Election::new(&client, "/election/below/here").unwrap();
        assert_eq!(soon(below.campaign()).await.unwrap_err().kind(), ErrorKind::NoAuth);
    }

    async fn a_leader_whose_node_is_deleted_learns_immediately_and_campaigns_again(backend: Backend) {
        let server = backend.start().await;
        let (client, admin) = (connect(&server).await, connect(&server).await);
        in_time(Duration::from_secs(1), async || {
            let leadership = soon(election(&client).campaign()).await.unwrap();
            let path = leadership.path();
            admin.delete(&path, None).await.unwrap();
            let deleted = Instant::now();
            assert_eq!(soon(leadership.lost()).await, LostReason::NodeDeleted);
            deleted.elapsed()
        })
        .await;

        let log = Log::new();
        let _candidate = Candidate::start(&election(&client), 0, &log);
        for term in 1..4 {
            let (_, fence, _) = log.term(term).await;
            let leader = soon(election(&admin).candidates()).await.unwrap()[0].clone();
            assert_eq!(leader.fence, fence);
            admin.delete(&format!("{ELECTION}/{}", leader.name), None).await.unwrap();
        }
        log.term(4).await;
        until_candidates(&election(&admin), 1).await;
    }

    async fn without_faults_the_leader_does_not_change(backend: Backend) {
        let server = backend.start().await;
        let proxies = join_all((0..3).map(|_| server.proxy())).await;
        let (log, mut candidates, mut clients) = (Log::new(), Vec::new(), Vec::new());
        for (number, proxy) in proxies.iter().enumerate() {
            let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
            candidates.push(Candidate::start(&election(&client), number, &log));
            until_candidates(&election(&client), number + 1).await;
            clients.push(client);
        }
        // Fifteen heartbeats take longer than two session timeouts.
        let beats = |trace: &[Traced]| trace.iter().filter(|frame| frame.is_reply(OpCode::Multi)).count();
        proxies[0].until(|trace| beats(trace) >= 15).await;
        assert_eq!(log.terms().len(), 1);
        // The next candidate renews its lease. Candidates behind it write nothing.
        assert!(beats(&proxies[1].trace()) > 0);
        assert_eq!(beats(&proxies[2].trace()), 0, "only the next candidate writes");
        for candidate in candidates.into_iter().rev() {
            candidate.stop().await.unwrap();
        }
    }

    async fn candidates_whose_nodes_vanish_at_the_same_time_settle_on_one_leader(backend: Backend) {
        let server = backend.start().await;
        let admin = connect(&server).await;
        let clients = join_all((0..3).map(|_| connect(&server))).await;
        let log = Log::new();
        let _candidates: Vec<_> =
            clients.iter().enumerate().map(|(number, client)| Candidate::start(&election(client), number, &log)).collect();
        for round in 1..6 {
            until_candidates(&election(&admin), 3).await;
            log.term(round).await;
            // Deletes all candidates in one transaction, and in the last round also the line.
            let nodes = soon(election(&admin).candidates()).await.unwrap();
            let mut vanish = admin.transaction();
            for node in &nodes {
                vanish = vanish.delete(&format!("{ELECTION}/{}", node.name), None);
            }
            if round == 5 {
                vanish = vanish.delete(ELECTION, None);
            }
            vanish.commit().await.unwrap();
        }
        log.term(6).await;
        until_candidates(&election(&admin), 3).await;
        let leader = soon(election(&admin).leader()).await.unwrap().unwrap();
        soon(async {
            while log.terms().last().unwrap().1 != leader.fence {
                docent_tests::pause().await;
            }
        }).await;
        let now = log.terms().len();
        // The leader stays, because no candidate displaces another.
        for _ in 0..20 {
            assert_eq!(soon(election(&admin).leader()).await.unwrap().unwrap(), leader);
        }
        assert_eq!(log.terms().len(), now);
    }

    async fn a_candidate_that_leaves_between_listing_and_watching_is_not_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (first, proxy) = (connect(&server).await, server.proxy().await);
        let second = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let leadership = soon(election(&first).campaign()).await.unwrap();
        let path = format!("{}{}", server.root(), leadership.path());
        // The listing sent with the ticket shows the leader. The watch request arrives this much later.
        proxy.set_delay(Direction::ToServer, Duration::from_millis(500));
        let campaign = tokio::spawn(election(&second).campaign());
        until_candidates(&election(&first), 2).await;
        soon(leadership.resign()).await.unwrap();
        let released = Instant::now();
        let _leads = soon(campaign).await.unwrap().unwrap();
        assert!(released.elapsed() < Duration::from_secs(4), "the campaign waited for a session to end: {:?}", released.elapsed());
        let trace = proxy.trace();
        let missed = trace.iter().position(|frame| frame.kind == FrameKind::Event && frame.path.as_ref() == Some(&path));
        let set = trace.iter().position(|frame| frame.is_reply(OpCode::SetWatches));
        assert!(missed.is_some() && missed < set, "the leader's node was not deleted before the watch was set");
    }

    async fn a_leader_that_leaves_wakes_the_next_candidate_and_the_one_behind_it(backend: Backend) {
        let server = backend.start().await;
        let proxies = join_all((0..6).map(|_| server.proxy())).await;
        let mut waiting = Vec::new();
        let leader = connect(&server).await;
        let leadership = soon(election(&leader).campaign()).await.unwrap();
        for (place, proxy) in proxies.iter().enumerate() {
            let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
            waiting.push(tokio::spawn(election(&client).campaign()));
            until_candidates(&election(&leader), place + 2).await;
            // Each candidate watches its predecessor and its own node.
            proxy.until(|trace| trace.iter().any(|frame| frame.is_reply(OpCode::SetWatches))).await;
        }
        let path = format!("{}{}", server.root(), leadership.path());
        soon(leadership.resign()).await.unwrap();
        let _leads = soon(waiting.remove(0)).await.unwrap().unwrap();
        let is_event = |frame: &Traced| frame.kind == FrameKind::Event && frame.path.as_deref() == Some(&path);
        // The candidate behind the new leader may receive its event only after the new leader leads.
        proxies[1].until(|trace| trace.iter().any(is_event)).await;
        let woken: HashSet<_> = proxies.iter().enumerate()
            .filter(|(_, proxy)| proxy.trace().iter().any(is_event))
            .map(|(place, _)| place)
            .collect();
        // The candidate behind the new leader is woken as well, because it is next.
        assert_eq!(woken, HashSet::from([0, 1]));
    }
}
