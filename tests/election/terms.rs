//! One leader at a time, each term higher than the previous, and no write under a term that has ended.

use crate::candidate::{Candidate, ELECTION, Event, Log, election, until_candidates};
use docent::node::TransactionResult;
use docent::{Client, CreateMode, ErrorKind, LostReason};
use docent_battery::{Backend, Proxy, TestServer, both_backends};
use docent_tests::{SHORT_SESSION, builder, connect, soon};
use futures_util::future::join_all;
use std::sync::{Arc, Mutex};

/// Opens a client whose link can be broken.
async fn behind_proxy(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    let client =
        builder(server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
    (client, proxy)
}

both_backends! {
    async fn at_most_one_leads_in_the_order_of_transactions_whatever_happens_to_leaders(backend: Backend) {
        let server = backend.start().await;
        let admin = connect(&server).await;
        admin.create("/ledger", "", CreateMode::Persistent).await.unwrap();
        let clients = join_all((0..4).map(|_| behind_proxy(&server))).await;
        let (log, written) = (Log::new(), Arc::new(Mutex::new(Vec::new())));
        let candidates: Vec<_> = clients.iter().enumerate().map(|(number, (client, _))| {
            let written = Arc::clone(&written);
            Candidate::with(&election(client), number, &log, move |leadership| {
                let written = Arc::clone(&written);
                async move {
                    // Writes until the leadership is lost.
                    loop {
                        let write = leadership.transaction().set("/ledger", leadership.fence().to_string(), None);
                        match write.commit().await {
                            Ok(results) => {
                                let [TransactionResult::Set(stat)] = results[..] else { unreachable!() };
                                written.lock().unwrap().push((stat.mzxid, leadership.fence()));
                            }
                            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {}
                            Err(error) => return Err(error),
                        }
                        docent_tests::pause().await;
                    }
                }
            })
        }).collect();
        for round in 0..8 {
            let (leader, fence, _) = log.term(round + 1).await;
            soon(async {
                while !written.lock().unwrap().iter().any(|(_, by)| *by == fence) {
                    docent_tests::pause().await;
                }
            }).await;
            let (client, proxy) = &clients[leader];
            match round % 4 {
                0 => server.expire(client.session_id().unwrap()).await.unwrap(),
                1 => admin.delete(&format!("{ELECTION}/{}", soon(election(&admin).candidates()).await.unwrap()[0].name), None).await.unwrap(),
                2 => {
                    proxy.blackhole();
                    log.term(round + 2).await;
                    proxy.heal().await.unwrap();
                    proxy.reset().await;
                }
                _ => {
                    proxy.cut().await;
                    log.term(round + 2).await;
                    proxy.heal().await.unwrap();
                }
            }
        }
        log.term(9).await;
        for candidate in candidates {
            candidate.stop().await.unwrap();
        }
        let mut written = written.lock().unwrap().clone();
        written.sort_unstable();
        assert!(written.windows(2).all(|pair| pair[0].1 <= pair[1].1), "an older leader wrote after a newer one");
        let fences: Vec<_> = log.terms().into_iter().map(|(_, fence, _)| fence).collect();
        assert!(fences.windows(2).all(|pair| pair[0] < pair[1]), "{fences:?}");
    }

    async fn terms_strictly_increase_even_if_the_elections_node_is_re_created(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let election = election(&client);
        let mut last = None;
        for _ in 0..3 {
            for _ in 0..2 {
                let leadership = soon(election.campaign()).await.unwrap();
                assert!(last < Some(leadership.fence()));
                last = Some(leadership.fence());
                assert_eq!(soon(election.reset()).await.unwrap_err().kind(), ErrorKind::NotEmpty);
                soon(leadership.resign()).await.unwrap();
            }
            soon(election.reset()).await.unwrap();
        }
    }

    async fn a_candidate_gains_and_loses_in_turn_and_has_one_node(backend: Backend) {
        const SESSIONS: usize = 5;
        let server = backend.start().await;
        let client = connect(&server).await;
        let (election, log) = (election(&client), Log::new());
        let candidate = Candidate::start(&election, 0, &log);
        for term in 1..=SESSIONS {
            log.term(term).await;
            assert!(election.is_leader());
            server.expire(client.session_id().unwrap()).await.unwrap();
        }
        log.term(SESSIONS + 1).await;
        until_candidates(&election, 1).await;
        candidate.stop().await.unwrap();
        until_candidates(&election, 0).await;
        assert!(!election.is_leader());
        let events = log.of(0);
        assert_eq!(events.len(), 2 * (SESSIONS + 1));
        for pair in events.chunks(2) {
            assert!(matches!(pair, [Event::Gained(began), Event::Ended(ended)] if began == ended), "{events:?}");
        }
    }

    async fn nothing_is_done_under_a_term_once_it_is_lost(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = behind_proxy(&server).await;
        let leadership = soon(election(&client).campaign()).await.unwrap();
        assert!(leadership.is_held() && !leadership.token().is_cancelled());
        assert_eq!(soon(leadership.run(async { 7 })).await, Ok(7));
        soon(leadership.verify()).await.unwrap();
        proxy.blackhole();
        let lost = soon(leadership.run(std::future::pending::<()>())).await.unwrap_err();
        assert_eq!(lost.reason, LostReason::LeaseExpired);
        assert!(!leadership.is_held() && leadership.token().is_cancelled());
        assert!(soon(leadership.run(async { unreachable!("the leadership is lost") })).await.is_err());
        proxy.heal().await.unwrap();
        proxy.reset().await;
        let write = leadership.transaction().create("/late", "", CreateMode::Persistent);
        assert!(soon(write.commit()).await.unwrap_err().is_lost());
        assert!(soon(leadership.verify()).await.unwrap_err().is_lost());
        assert_eq!(soon(leadership.lost()).await, LostReason::LeaseExpired);
        assert!(soon(leadership.resign()).await.unwrap_err().is_lost());
        let other = connect(&server).await;
        assert_eq!(other.exists("/late").await.unwrap(), None);
    }

    async fn a_leader_whose_session_is_ended_does_not_lead_again_before_the_waiting_candidates(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..3).map(|_| connect(&server))).await;
        let log = Log::new();
        let mut candidates = Vec::new();
        for (number, client) in clients.iter().enumerate() {
            candidates.push(Candidate::start(&election(client), number, &log));
            until_candidates(&election(client), number + 1).await;
        }
        log.term(1).await;
        server.expire(clients[0].session_id().unwrap()).await.unwrap();
        assert_eq!(log.term(2).await.0, 1);
        until_candidates(&election(&clients[0]), 3).await;
        server.expire(clients[1].session_id().unwrap()).await.unwrap();
        assert_eq!(log.term(3).await.0, 2);
    }
}
