//! Outages of servers and sessions.

use crate::candidate::{Candidate, Log, election, until_candidates};
use docent::ErrorKind;
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, soon};
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::time::Duration;

both_backends! {
    async fn one_leads_after_the_server_was_restarted(backend: Backend) {
        let server = backend.start_own().await;
        let clients = join_all((0..4).map(|_| connect(&server))).await;
        let log = Log::new();
        let candidates: Vec<_> =
            clients.iter().enumerate().map(|(number, client)| Candidate::start(&election(client), number, &log)).collect();
        log.term(1).await;
        until_candidates(&election(&clients[0]), 4).await;
        server.stop().await;
        server.start_again().await;
        until_candidates(&election(&clients[0]), 4).await;
        let leader = soon(election(&clients[0]).leader()).await.unwrap().unwrap();
        soon(async {
            while log.terms().last().unwrap().1 != leader.fence {
                docent_tests::pause().await;
            }
        }).await;
        assert_eq!(clients.iter().filter(|client| Some(leader.session_id) == client.session_id()).count(), 1);
        for candidate in candidates {
            candidate.stop().await.unwrap();
        }
    }

    async fn a_candidate_that_starts_without_a_server_leads_once_one_is_available(backend: Backend) {
        let server = backend.start_own().await;
        server.stop().await;
        let client = builder(&server, server.connect_string())
            .operation_timeout(Duration::from_millis(300)).build().unwrap();
        let log = Log::new();
        let candidate = Candidate::start(&election(&client), 0, &log);
        // The length of this outage is the subject of the test.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(log.all(), []);
        server.start_again().await;
        log.term(1).await;
        candidate.stop().await.unwrap();
    }

    async fn a_client_closed_before_it_ever_connected_ends_a_campaign(backend: Backend) {
        let server = backend.start_own().await;
        server.stop().await;
        let client = builder(&server, server.connect_string()).build().unwrap();
        let (campaign, log) = (tokio::spawn(election(&client).campaign()), Log::new());
        let candidate = Candidate::start(&election(&client), 0, &log);
        docent_tests::pause().await;
        soon(client.close()).await;
        assert_eq!(soon(campaign).await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(candidate.ends().await.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn a_leader_that_is_closed_after_its_session_ended_is_followed_by_another(backend: Backend) {
        let server = backend.start().await;
        let (client, next) = (connect(&server).await, connect(&server).await);
        let log = Log::new();
        let first = Candidate::start(&election(&client), 0, &log);
        log.term(1).await;
        let _second = Candidate::start(&election(&next), 1, &log);
        until_candidates(&election(&next), 2).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(client.close()).await;
        assert_eq!(log.term(2).await.0, 1);
        assert_eq!(first.ends().await.unwrap_err().kind(), ErrorKind::Closed);
        until_candidates(&election(&next), 1).await;
    }

    async fn a_waiting_candidate_whose_session_ends_rejoins_at_the_end_of_the_line(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..3).map(|_| connect(&server))).await;
        let log = Log::new();
        let mut candidates = Vec::new();
        for (number, client) in clients.iter().enumerate() {
            candidates.push(Candidate::start(&election(client), number, &log));
            until_candidates(&election(&clients[0]), number + 1).await;
        }
        let before = clients[1].session_id().unwrap();
        server.expire(before).await.unwrap();
        soon(async {
            loop {
                let line = election(&clients[0]).candidates().await.unwrap();
                let last = line.last().map(|last| last.session_id);
                if line.len() == 3 && last != Some(before) && last == clients[1].session_id() {
                    return;
                }
                docent_tests::pause().await;
            }
        }).await;
        candidates.remove(0).stop().await.unwrap();
        assert_eq!(log.term(2).await.0, 2);
        candidates.remove(1).stop().await.unwrap();
        assert_eq!(log.term(3).await.0, 1);
    }
    async fn an_election_of_a_client_that_is_bound_to_its_session_ends_with_the_session(backend: Backend) {
        let server = backend.start().await;
        let (leader, client) = (connect(&server).await, connect(&server).await);
        let _leads = soon(election(&leader).campaign()).await.unwrap();
        let bound = election(&client.in_this_session());
        let log = Log::new();
        let (campaign, candidate) = (tokio::spawn(bound.campaign()), Candidate::start(&bound, 0, &log));
        until_candidates(&bound, 3).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        assert_eq!(soon(campaign).await.unwrap().unwrap_err().kind(), ErrorKind::SessionChanged);
        assert_eq!(candidate.ends().await.unwrap_err().kind(), ErrorKind::SessionChanged);
        soon(client.state().wait_for(|connection| connection.generation == 2)).await;
        assert_eq!(soon(bound.wait_for_leader()).await.unwrap_err().kind(), ErrorKind::SessionChanged);
        assert_eq!(soon(bound.observe().count()).await, 0);
    }
}
