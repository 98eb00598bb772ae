//! Candidates queue in one line with Curator's.

use crate::candidate::until_candidates;
use docent::election::ElectionLayout;
use docent::{Client, CreateMode, Election, Mutex};
use docent_battery::{Backend, TestServer, both_backends};
use docent_tests::{builder, connect, soon};
use std::time::Duration;

const UUID: &str = "9a794062-0b31-421c-9cfe-0699f14437da";

async fn named(server: &TestServer) -> Client {
    builder(server, server.connect_string()).identity("10.0.0.7").connect().await.unwrap()
}

/// Checks a name and returns the text before its number.
fn is_protected(path: &str, marker: &str) {
    let name = path.strip_prefix("/election/_c_").unwrap();
    let (uuid, rest) = name.split_at(UUID.len());
    assert!(uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()), "{path}");
    assert_eq!(rest, format!("-{marker}0000000000"), "{path}");
}

both_backends! {
    async fn nodes_and_data_match_curators_leader_latch(backend: Backend) {
        let server = backend.start().await;
        let client = named(&server).await;
        let nameless = soon(Election::new(&client, "/election").unwrap().campaign()).await.unwrap();
        is_protected(&nameless.path(), "latch-");
        let node = client.get(&nameless.path()).await.unwrap();
        assert_eq!((node.data.len(), node.stat.owner), (0, client.session_id()));
        soon(nameless.resign()).await.unwrap();
        let named = Election::builder(&client, "/election").id("host-7").build().unwrap();
        let leadership = soon(named.campaign()).await.unwrap();
        assert_eq!(client.get(&leadership.path()).await.unwrap().data, "host-7");
    }

    async fn nodes_and_data_match_curators_leader_selector(backend: Backend) {
        let server = backend.start().await;
        let client = named(&server).await;
        let selector = || Election::builder(&client, "/election").layout(ElectionLayout::LeaderSelector);
        let nameless = soon(selector().build().unwrap().campaign()).await.unwrap();
        is_protected(&nameless.path(), "lock-");
        assert_eq!(client.get(&nameless.path()).await.unwrap().data, "10.0.0.7");
        soon(nameless.resign()).await.unwrap();
        let leadership = soon(selector().id("host-7").build().unwrap().campaign()).await.unwrap();
        assert_eq!(client.get(&leadership.path()).await.unwrap().data, "host-7");
        // The layout is that of Curator's InterProcessMutex, and therefore of Docent's mutex.
        let lock = Mutex::new(&client, "/election").unwrap();
        assert!(lock.acquire_timeout(Duration::from_millis(300)).await.is_err());
    }

    async fn candidates_of_two_layouts_refuse_each_other_and_never_lead_together(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let latch = Election::new(&client, "/election").unwrap();
        let selector = Election::builder(&other, "/election").layout(ElectionLayout::LeaderSelector).build().unwrap();
        let refused = |error: docent::Error, own: &str, foreign: &str| {
            assert_eq!(error.kind(), docent::ErrorKind::MixedKinds, "{error}");
            assert!(error.to_string().contains(own) && error.to_string().contains(foreign), "{error}");
        };
        let leading = soon(latch.campaign()).await.unwrap();
        let error = soon(selector.campaign()).await.unwrap_err();
        refused(error, "leader selector", "leader latch");
        let run = selector.run(|_| async { unreachable!("the selector cannot lead") });
        let error: docent::Error = soon(run).await.unwrap_err();
        refused(error, "leader selector", "leader latch");
        until_candidates(&latch, 1).await;
        assert!(leading.is_held());
        soon(leading.resign()).await.unwrap();
        let leading = soon(selector.campaign()).await.unwrap();
        refused(soon(latch.campaign()).await.unwrap_err(), "leader latch", "leader selector");
        soon(leading.resign()).await.unwrap();
        // Of two concurrent campaigns, at most one leads, and the other receives the reason.
        for _ in 0..20 {
            let both = async { tokio::join!(latch.campaign(), selector.campaign()) };
            let (one, two) = soon(both).await;
            assert!(one.is_err() || two.is_err(), "two leaders");
            for leading in [one, two].into_iter().flatten() {
                soon(leading.resign()).await.unwrap();
            }
            soon(async {
                while !latch.candidates().await.unwrap().is_empty()
                    || !selector.candidates().await.unwrap().is_empty() {}
            }).await;
        }
    }

    async fn a_kazoo_candidate_is_waited_for_if_configured_as_a_neighbour(backend: Backend) {
        let server = backend.start().await;
        let (client, python) = (connect(&server).await, connect(&server).await);
        let foreign = "/election/8eb6557ec51a32d1e0cb91e4d5e9a5c5__lock__";
        let leader = python.create(foreign, "python-1", CreateMode::EphemeralSequential).await.unwrap();
        let election = Election::builder(&client, "/election").neighbours("__lock__").build().unwrap();
        let campaign = tokio::spawn(election.campaign());
        until_candidates(&election, 2).await;
        assert_eq!(soon(election.leader()).await.unwrap().unwrap().id, "python-1");
        assert!(!campaign.is_finished());
        python.delete(&leader.path, None).await.unwrap();
        drop(soon(campaign).await.unwrap().unwrap());
    }

    async fn a_curator_candidate_is_waited_for_and_waits(backend: Backend) {
        let server = backend.start().await;
        let (client, java) = (connect(&server).await, connect(&server).await);
        let foreign = format!("/election/_c_{UUID}-latch-");
        let leader = java.create(&foreign, "java-1", CreateMode::EphemeralSequential).await.unwrap();
        let election = Election::builder(&client, "/election").id("rust-1").build().unwrap();
        let campaign = tokio::spawn(election.campaign());
        until_candidates(&election, 2).await;
        assert_eq!(soon(election.leader()).await.unwrap().unwrap().id, "java-1");
        let candidates = soon(election.candidates()).await.unwrap();
        let all: Vec<_> = candidates.iter().map(|one| (&one.identity[..], one.sequence, one.holds)).collect();
        assert_eq!(all, [(&b"java-1"[..], 0, true), (b"rust-1", 1, false)]);
        assert!(candidates.iter().all(|one| one.age() < Duration::from_secs(60)));
        assert!(!campaign.is_finished());
        java.delete(&leader.path, None).await.unwrap();
        let leadership = soon(campaign).await.unwrap().unwrap();
        assert_eq!(soon(election.leader()).await.unwrap().unwrap().fence, leadership.fence());
    }

    async fn near_the_end_of_the_counter_the_leader_is_the_oldest_candidate(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for (number, id) in [("2147483647", "older"), ("-2147483648", "newer")] {
            let path = format!("/election/_c_{UUID}-latch-{number}");
            client.create(&path, id, CreateMode::Ephemeral).await.unwrap();
        }
        let election = Election::new(&client, "/election").unwrap();
        assert_eq!(soon(election.leader()).await.unwrap().unwrap().id, "older");
        assert_eq!(soon(election.candidates()).await.unwrap()[0].identity, "older");
    }

    async fn an_election_without_candidates_has_no_leader(backend: Backend) {
        let server = backend.start().await;
        let election = Election::new(&connect(&server).await, "/election").unwrap();
        assert_eq!(soon(election.leader()).await.unwrap(), None);
        assert_eq!(soon(election.candidates()).await.unwrap(), []);
        assert!(!election.is_leader());
    }
}
