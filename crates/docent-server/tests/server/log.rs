//! The log: a subscriber that blocks must not stop the server.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use crate::support::{Peer, fresh};
use docent_proto::{ConnectRequest, CreateMode};
use docent_server::{Limits, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_default};
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Maximum wait for a server that is not locked.
const PATIENCE: Duration = Duration::from_secs(10);

/// Subscriber that queries the server's nodes during each event, from another thread.
#[derive(Clone, Default)]
struct Curious {
    server: Arc<OnceLock<Arc<Server>>>,
    answered: Arc<AtomicUsize>,
    locked: Arc<AtomicUsize>,
}

impl Subscriber for Curious {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("docent::server")
    }

    fn event(&self, _: &Event<'_>) {
        let Some(server) = self.server.get().cloned() else { return };
        let (done, answer) = mpsc::channel();
        thread::spawn(move || done.send(server.node_count()));
        let count = if answer.recv_timeout(PATIENCE).is_ok() { &self.answered } else { &self.locked };
        count.fetch_add(1, Ordering::SeqCst);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn the_server_answers_other_clients_while_an_event_is_logged() {
    // If there were a single subscriber, a thread without one could disable an event for all threads.
    let _other_clients = [(); 2].map(|()| Dispatch::new(Curious::default()));
    let curious = Curious::default();
    let _guard = set_default(curious.clone());
    let limits = Limits::default().nodes(0).frame_bytes(1_000).events_per_transaction(0);
    let limits = limits.sessions(2).handshake(Duration::from_millis(20));
    let server = Arc::new(Server::builder().limits(limits).start().await.unwrap());
    assert!(curious.server.set(Arc::clone(&server)).is_ok());

    let mut peer = Peer::open(&server).await;
    peer.create("/a", CreateMode::Persistent).await.expect_err("no nodes are allowed");
    let mut watcher = Peer::open(&server).await;
    watcher.get_data("/", true).await.unwrap();
    peer.set_data("/", b"x").await.unwrap();
    assert!(watcher.is_closed().await, "the limit on events did not close the link");
    let newer = ConnectRequest { last_zxid_seen: i64::MAX, ..fresh(10_000) };
    for refused in [newer, fresh(10_000)] {
        assert!(Peer::handshake(&server, &refused).await.is_none());
    }
    for length in [-1, 1_001] {
        let mut peer = Peer::raw(&server).await;
        peer.send_bytes(&i32::to_be_bytes(length)).await;
        assert!(peer.is_closed().await);
    }
    assert!(Peer::raw(&server).await.is_closed().await, "a link without a handshake was not closed");
    assert_eq!(curious.locked.load(Ordering::SeqCst), 0, "events were logged while the server was locked");
    let answered = curious.answered.load(Ordering::SeqCst);
    assert!(answered >= 7, "{answered} events were logged");
}

/// Collects the files that use macros of `tracing`.
fn logging_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            logging_files(&path, found);
        } else if fs::read_to_string(&path).unwrap().contains("tracing::") {
            found.push(path);
        }
    }
}

#[test]
fn only_one_file_logs_so_that_nothing_is_logged_while_the_server_is_locked() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    logging_files(&sources, &mut found);
    assert_eq!(found, [sources.join("log.rs")]);
}
