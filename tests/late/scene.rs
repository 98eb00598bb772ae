use docent::server::Follower;
use docent::{Client, CreateMode};
use docent_battery::{Backend, Direction, Flow, Proxy, TestServer};
use docent_tests::{SHORT_SESSION, builder, child_count, connect, soon, until};
use std::time::Duration;
use tokio::task::JoinHandle;

/// A leader and a follower, with one client connected to the follower and another to the leader.
pub(crate) struct Scene {
    server: TestServer,
    follower: Follower,
    /// Proxy for the client's links to the leader.
    proxy: Proxy,
    pub(crate) client: Client,
    pub(crate) other: Client,
}

impl Scene {
    pub(crate) async fn start() -> Self {
        let server = Backend::Memory.start().await;
        let follower = server.follower(|follower| follower.sync_limit(Duration::from_secs(60))).await;
        let client = builder(&server, follower.connect_string()).session_timeout(SHORT_SESSION);
        let client = soon(client.connect()).await.unwrap();
        // Creates the session's marker for exact writes.
        client.create("/first", "", CreateMode::Ephemeral).await.unwrap();
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        Self { server, follower, proxy, client, other }
    }

    /// Starts `write` while the follower is cut off. The follower holds the write and the session's request
    /// for a new link. Then the client gets the leader's address.
    pub(crate) async fn begin<F>(&self, write: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.hold(write, self.server.connect_string()).await
    }

    /// Like [`begin`](Self::begin), but delays the client's first multi to the leader until the late writes
    /// are delivered.
    pub(crate) async fn begin_and_deliver_first<F>(&self, write: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.proxy.set_flow(Direction::ToServer, Flow::Hold);
        let written = self.hold(write, self.proxy.connect_string()).await;
        self.deliver();
        self.proxy.heal().await.unwrap();
        written
    }

    async fn hold<F>(&self, write: F, then: String) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.follower.cut_off_holding();
        let written = tokio::spawn(write);
        until(async || self.follower.held_count() >= 2).await;
        self.client.update_servers(&then).unwrap();
        written
    }

    /// Reconnects the follower to its leader. When this returns, the held requests are delivered.
    pub(crate) fn deliver(&self) {
        assert!(self.follower.held_count() >= 2, "the follower must hold requests");
        self.follower.rejoin();
        assert_eq!(self.follower.held_count(), 0);
    }

    /// Connects a client to the leader through a proxy.
    pub(crate) async fn at_leader(&self) -> (Client, Proxy) {
        let proxy = self.server.proxy().await;
        (soon(builder(&self.server, proxy.connect_string()).connect()).await.unwrap(), proxy)
    }

    /// Waits until `path` has `count` children.
    pub(crate) async fn until_children(&self, path: &str, count: usize) {
        until(async || child_count(&self.other, path).await == count).await;
    }
}
