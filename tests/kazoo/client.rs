//! A kazoo client in a separate process, and a Docent client beside it.

use docent::Client;
use docent::client::ParentKind;
use docent_battery::packages::KAZOO;
use docent_battery::peer::{Peer, PeerRecipe};
use docent_battery::{Proxy, TestServer};
use docent_proto::OpCode;
use docent_tests::{SESSION, builder, soon};
use std::path::Path;
use std::time::Duration;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kazoo/peer.py");

/// Data of Docent's nodes in tests that need no other data.
pub(crate) const IDENTITY: &str = "ours";

/// A process with a kazoo client below the root of a test, behind its own proxy. `peer.py` describes the
/// protocol on its pipes.
///
/// # On drop
///
/// The process is killed.
pub(crate) struct Kazoo<'a> {
    peer: Peer,
    server: &'a TestServer,
    proxy: Proxy,
}

/// Opens a Docent client and starts a kazoo client.
pub(crate) async fn both(server: &TestServer) -> (Client, Kazoo<'_>) {
    (connect(server).await, Kazoo::start(server).await)
}

/// Opens a Docent client. Kazoo's recipes create their parent nodes once and rely on them afterwards, so the
/// parents must not be containers, which are deleted after their last child.
pub(crate) async fn connect(server: &TestServer) -> Client {
    let own = builder(server, server.connect_string()).identity(IDENTITY);
    own.parents(ParentKind::Persistent).connect().await.unwrap()
}

impl<'a> Kazoo<'a> {
    /// Starts the process and waits until its client is connected.
    pub(crate) async fn start(server: &'a TestServer) -> Self {
        Self::start_with(server, SESSION).await
    }

    /// Does the same as [`start`](Self::start), with this session timeout.
    pub(crate) async fn start_with(server: &'a TestServer, session_timeout: Duration) -> Self {
        let proxy = server.proxy().await;
        let mut python = KAZOO.command(Path::new(env!("CARGO_TARGET_TMPDIR")), PROGRAM).await.unwrap();
        python
            .arg(format!("{}{}", proxy.connect_string(), server.root()))
            .arg(session_timeout.as_millis().to_string());
        Self { peer: Peer::start(&mut python, KAZOO.missing()).await, server, proxy }
    }

    /// Creates one of kazoo's recipes: a kind that `peer.py` knows, with its arguments.
    pub(crate) async fn make(&self, recipe: &str) -> PeerRecipe<'_> {
        self.peer.make(recipe).await
    }

    /// Waits until the kazoo client watches the data of the node at `path`, as its locks do with their
    /// predecessor.
    pub(crate) async fn until_it_waits_for(&self, path: &str) {
        self.until_replied(OpCode::GetData, path).await;
    }

    /// Waits until the kazoo client has checked whether the node at `path` exists, as its barriers do before
    /// they wait.
    pub(crate) async fn until_it_checked(&self, path: &str) {
        self.until_replied(OpCode::Exists, path).await;
    }

    /// Waits until the kazoo client has listed the node at `path`. From the listing, members of a double
    /// barrier learn that they have to wait.
    pub(crate) async fn until_it_listed(&self, path: &str) {
        self.until_replied(OpCode::GetChildren, path).await;
    }

    async fn until_replied(&self, op: OpCode, path: &str) {
        let full = format!("{}{path}", self.server.root());
        let path = Some(&full);
        soon(
            self.proxy
                .until(|trace| trace.iter().any(|frame| frame.is_reply(op) && frame.path.as_ref() == path)),
        )
        .await;
    }

    /// Ends the kazoo client's session, as expiry does.
    pub(crate) async fn expire(&self) {
        let id = self.make("session").await.done("id").await.remove(0);
        self.server.expire(id.parse().unwrap()).await.unwrap();
    }

    /// Kills the process, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.peer.kill();
    }
}

/// Ends the session of a Docent client, as expiry does.
pub(crate) async fn expire(server: &TestServer, client: &Client) {
    server.expire(client.session_id().unwrap()).await.unwrap();
}
