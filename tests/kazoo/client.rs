//! A kazoo client in a process of its own, and a client of ours beside it.

use docent::Client;
use docent::client::ParentKind;
use docent_battery::{Proxy, TestServer, kazoo};
use docent_proto::OpCode;
use docent_tests::peer::{Peer, Theirs};
use docent_tests::{SESSION, builder, soon};
use std::path::Path;
use std::time::Duration;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kazoo/peer.py");

/// Data of our nodes where nothing else is asked for.
pub(crate) const IDENTITY: &str = "ours";

/// Process with a kazoo client below the root of a test, behind a proxy of its own. `peer.py` says what goes
/// over its pipes.
///
/// # On drop
/// The process is killed.
pub(crate) struct Kazoo<'a> {
    peer: Peer,
    server: &'a TestServer,
    proxy: Proxy,
}

/// A client of ours and one of kazoo's.
pub(crate) async fn both(server: &TestServer) -> (Client, Kazoo<'_>) {
    (connect(server).await, Kazoo::start(server).await)
}

/// A client of ours. Kazoo's recipes make their parents once and count on them from then on, so that they
/// must not go with their last child.
pub(crate) async fn connect(server: &TestServer) -> Client {
    let ours = builder(server, server.connect_string()).identity(IDENTITY);
    ours.parents(ParentKind::Persistent).connect().await.unwrap()
}

impl<'a> Kazoo<'a> {
    /// Starts it and waits until it is connected.
    pub(crate) async fn start(server: &'a TestServer) -> Self {
        Self::start_with(server, SESSION).await
    }

    /// As [`start`](Self::start), with this session timeout.
    pub(crate) async fn start_with(server: &'a TestServer, session_timeout: Duration) -> Self {
        let proxy = server.proxy().await;
        let mut python = kazoo::python(Path::new(env!("CARGO_TARGET_TMPDIR")), PROGRAM).await.unwrap();
        python
            .arg(format!("{}{}", proxy.connect_string(), server.root()))
            .arg(session_timeout.as_millis().to_string());
        Self { peer: Peer::start(&mut python, kazoo::MISSING).await, server, proxy }
    }

    /// Makes one of its recipes: a kind that `peer.py` knows, with its arguments.
    pub(crate) async fn make(&self, what: &str) -> Theirs<'_> {
        self.peer.make(what).await
    }

    /// Waits until it watches the data of the node at `path`: what its locks do to one that is ahead.
    pub(crate) async fn until_it_waits_for(&self, path: &str) {
        self.until_it_asked(OpCode::GetData, path).await;
    }

    /// Waits until it was told whether the node at `path` is there: what its barriers do while they wait.
    pub(crate) async fn until_it_looked_at(&self, path: &str) {
        self.until_it_asked(OpCode::Exists, path).await;
    }

    /// Waits until it was told of the children of the node at `path`: where members of a double barrier find
    /// out that they have to wait.
    pub(crate) async fn until_it_listed(&self, path: &str) {
        self.until_it_asked(OpCode::GetChildren, path).await;
    }

    async fn until_it_asked(&self, op: OpCode, path: &str) {
        let full = format!("{}{path}", self.server.root());
        let path = Some(&full);
        soon(
            self.proxy
                .until(|trace| trace.iter().any(|frame| frame.is_reply(op) && frame.path.as_ref() == path)),
        )
        .await;
    }

    /// Ends its session, as expiry does.
    pub(crate) async fn expire(&self) {
        let id = self.make("session").await.done("id").await.remove(0);
        self.server.expire(id.parse().unwrap()).await.unwrap();
    }

    /// Ends the process as a crash does.
    pub(crate) fn kill(&mut self) {
        self.peer.kill();
    }
}

/// Ends the session of a client of ours, as expiry does.
pub(crate) async fn expire(server: &TestServer, client: &Client) {
    server.expire(client.session_id().unwrap()).await.unwrap();
}
