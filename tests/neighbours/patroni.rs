//! Members of a PostgreSQL cluster with Patroni's class for ZooKeeper, and a Docent client that finds the
//! primary.

use crate::processes::peer;
use docent::Client;
use docent::cache::WatchStream;
use docent::discovery::{Members, Membership};
use docent::node::Node;
use docent_battery::packages::PATRONI;
use docent_battery::peer::{Peer, PeerRecipe};
use docent_battery::{Backend, TestServer, both_backends_with_packages};
use docent_tests::{SESSION, connect, soon, until};
use futures_util::StreamExt;
use serde_json::Value;

/// Starts the process of a member.
async fn member(server: &TestServer, name: &str) -> Peer {
    peer(&PATRONI, "member.py", server, &[name, &SESSION.as_secs().to_string()]).await
}

/// A service that wants the primary's address. It only reads.
struct Finder {
    leader: WatchStream<Node>,
    members: Members,
}

impl Finder {
    async fn start(client: &Client) -> Self {
        let leader = client.watch_data("/service/batman/leader").unwrap();
        let group = Membership::new(client, "/service/batman/members").unwrap();
        Self { leader, members: soon(group.members()).await.unwrap() }
    }

    /// Waits until this member leads and has the role of the primary. Returns its address.
    async fn primary(&mut self, name: &str) -> String {
        soon(async {
            loop {
                let leader = self.leader.next().await.unwrap().unwrap();
                if leader.is_some_and(|leader| leader.data == name.as_bytes()) {
                    break;
                }
            }
        })
        .await;
        until(async || self.state(name).is_some_and(|state| state["role"] == "primary")).await;
        self.state(name).unwrap()["conn_url"].as_str().unwrap().to_owned()
    }

    fn state(&self, name: &str) -> Option<Value> {
        self.members.get(name).map(|peer| serde_json::from_slice(&peer.data).unwrap())
    }

    fn names(&self) -> Vec<String> {
        self.members.current().iter().map(|peer| peer.id.to_string()).collect()
    }
}

/// Asserts what a member reads of the cluster.
async fn reads(member: &PeerRecipe<'_>, expected: &[&str]) {
    let shown = member.done("show").await;
    for part in expected {
        assert!(shown.iter().any(|shown| shown == part), "{part}: {shown:?}");
    }
}

both_backends_with_packages! {
    async fn a_service_finds_patronis_primary_through_a_failover_and_a_switchover(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut finder = Finder::start(&client).await;
        let (mut process, other) = (member(&server, "p1").await, member(&server, "p2").await);
        let (p1, p2) = (process.make("member").await, other.make("member").await);
        p1.done("initialize 7042").await;
        p2.refused("initialize 7043").await;
        p1.done("acquire").await;
        p2.refused("acquire").await;
        p1.done("touch primary").await;
        p2.done("touch replica").await;
        assert_eq!(finder.primary("p1").await, "postgres://p1.example:5432/postgres");
        until(async || finder.names() == ["p1", "p2"]).await;

        p1.done(r#"config {"ttl":8}"#).await;
        p1.done("update 4711").await;
        p1.done("failover p1 p2").await;
        p1.done("sync p1 p2").await;
        let written = ["initialize=7042", r#"config={"ttl":8}"#, "lsn=4711", "failover=p1-p2", "sync=p1-p2"];
        reads(&p2, &written).await;
        reads(&p2, &["leader=p1", "members=p1,p2"]).await;

        // The leader is killed. Its session expires, which wakes the replica.
        let watching = p2.start("watch 60");
        process.kill();
        watching.done().await;
        until(async || p2.done("show").await.contains(&"leader=None".to_owned())).await;
        p2.done("acquire").await;
        p2.done("touch primary").await;
        assert_eq!(finder.primary("p2").await, "postgres://p2.example:5432/postgres");
        until(async || finder.names() == ["p2"]).await;

        // It returns as a replica, and takes over when the leader resigns.
        let process = member(&server, "p1").await;
        let p1 = process.make("member").await;
        p1.refused("acquire").await;
        p1.done("touch replica").await;
        reads(&p1, &["leader=p2", "members=p1,p2", written[0], written[1], written[2]]).await;
        let watching = p1.start("watch 60");
        p2.done("resign").await;
        watching.done().await;
        until(async || p1.done("show").await.contains(&"leader=None".to_owned())).await;
        p1.done("acquire").await;
        p1.done("touch primary").await;
        p2.done("touch replica").await;
        assert_eq!(finder.primary("p1").await, "postgres://p1.example:5432/postgres");
        until(async || finder.state("p2").is_some_and(|state| state["role"] == "replica")).await;
        p2.refused("acquire").await;
    }
}
