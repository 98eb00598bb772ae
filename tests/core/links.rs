//! Frames that a link carries, and how a client reconnects.

use docent::{Client, ConnectionState, CreateMode, Mutex};
use docent_battery::{Backend, Direction, FrameKind, Net, Proxy, Traced, both_backends, round_trips};
use docent_proto::OpCode;
use docent_tests::fake::{FakeServer, connected_read_only};
use docent_tests::{builder, in_time, soon};
use futures_util::{StreamExt, poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Delay in each direction.
const DELAY: Duration = Duration::from_millis(10);
const RUNS: usize = 20;
/// Longest time between the servers' return and the re-attach of the session.
const FOUND_AGAIN: Duration = Duration::from_secs(2);

/// Requests in a trace whose replies a caller awaits. A holder's watch on its own node and pings are not
/// among them.
fn awaited(trace: &[Traced]) -> Vec<Traced> {
    let idle = |frame: &Traced| matches!(frame.op, Some(OpCode::GetData | OpCode::Ping));
    trace.iter().filter(|frame| !idle(frame)).cloned().collect()
}

fn requests(trace: &[Traced]) -> Vec<OpCode> {
    trace.iter().filter(|frame| frame.kind == FrameKind::Request).filter_map(|frame| frame.op).collect()
}

/// Keeps a session of ten seconds over an outage of seven, which is longer than a lease and shorter than the
/// session.
///
/// On a busy machine, the servers may take long to return. An attempt that takes longer than `longest` proves
/// nothing and is repeated.
async fn recovers(client: &Client, longest: Duration, away: impl AsyncFn(), back: impl AsyncFn()) {
    in_time(FOUND_AGAIN, async || {
        for _ in 0..5 {
            if let Some(took) = survives(client, longest, &away, &back).await {
                return took;
            }
        }
        panic!("no outage was shorter than {longest:?}");
    })
    .await;
}

/// Time between the servers' return and the re-attach of the session. `None` if the outage took longer than
/// `longest`.
async fn survives(
    client: &Client,
    longest: Duration,
    away: impl AsyncFn(),
    back: impl AsyncFn(),
) -> Option<Duration> {
    let guard = soon(Mutex::new(client, "/lock").unwrap().acquire()).await.unwrap();
    let (session, mut state) = (client.session_id(), client.state());
    let before = state.current();
    // The servers count the timeout from this request on.
    client.ensure_absent("/kept").await.unwrap();
    client.create("/kept", "", CreateMode::Ephemeral).await.unwrap();
    let start = Instant::now();
    away().await;
    // The test needs an outage of exactly this length.
    tokio::time::sleep(Duration::from_secs(7).saturating_sub(start.elapsed())).await;
    // The lease ends a third of the timeout before the session can expire.
    assert!(!guard.is_held(), "the guard outlived its lease");
    soon(guard.lost()).await;
    back().await;
    if start.elapsed() > longest {
        return None;
    }
    let back = Instant::now();
    let after = soon(state.reached(ConnectionState::Connected)).await.unwrap();
    let took = back.elapsed();
    if took > FOUND_AGAIN {
        // The session may already have expired.
        return Some(took);
    }
    assert_eq!(after.generation, before.generation);
    assert_eq!(client.session_id(), session, "the session must be kept");
    assert!(!guard.is_held(), "a lost guard must stay lost");
    client.get("/kept").await.unwrap();
    Some(took)
}

/// A server that has lost its quorum and serves only reads. It closes the links of clients that did not ask
/// for a read-only session, as ZooKeeper does. Every second time it offers such a session nevertheless.
struct ReadOnly {
    address: String,
    /// Number of links that asked for a session. `probed` counts those among them that claimed to have seen
    /// no transaction.
    met: Arc<AtomicUsize>,
    probed: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl ReadOnly {
    async fn start(net: &Net) -> Self {
        let server = FakeServer::start_on(net).await;
        let address = server.connect_string();
        let (met, probed) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let (meets, probes) = (Arc::clone(&met), Arc::clone(&probed));
        let task = tokio::spawn(async move {
            loop {
                let mut link = server.link().await;
                let Ok(asked) = link.connect_request().await else { continue };
                assert_ne!(asked.read_only, Some(true), "no client requests a read-only session");
                if (asked.session_id, asked.last_zxid_seen) == (0, 0) {
                    probes.fetch_add(1, Ordering::SeqCst);
                } else if meets.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                    link.send(&connected_read_only(asked.timeout_ms, asked.session_id)).await;
                    link.until_closed().await;
                }
            }
        });
        Self { address, met, probed, task }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Breaks the link repeatedly until `met` reports that the client has tried the other server as well.
async fn until_met(client: &Client, link: &Proxy, met: impl Fn() -> usize) {
    let (session, before) = (client.session_id(), client.state().current());
    let mut resets = 0;
    while met() < 2 {
        resets += 1;
        link.reset().await;
        soon(client.sync("/")).await.unwrap();
    }
    let after = client.state().current();
    assert_eq!((after.generation, after.rollbacks), (before.generation, 0));
    assert_eq!(after.suspensions, before.suspensions + resets, "a server without the session was used");
    assert_eq!(client.session_id(), session, "the session must move to a server that has it");
}

async fn ten_second_session(server: &docent_battery::TestServer, proxy: &Proxy) -> Client {
    builder(server, proxy.connect_string()).session_timeout(Duration::from_secs(10)).connect().await.unwrap()
}

both_backends! {
    async fn the_end_of_a_client_is_no_lost_link(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).connect().await.unwrap();
        let states = client.state();
        soon(client.close()).await;
        let published: Vec<_> = soon(states.map(|now| (now.state, now.suspensions)).collect()).await;
        assert_eq!(published.last(), Some(&(ConnectionState::Closed, 0)));
    }

    async fn a_create_and_the_listing_after_it_are_one_round_trip_on_a_slow_link(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mutex = Mutex::new(&client, "/lock").unwrap();
        // A container would be deleted between two runs and re-created.
        client.create("/lock", "", CreateMode::Persistent).await.unwrap();
        proxy.set_delay(Direction::ToServer, DELAY);
        proxy.set_delay(Direction::ToClient, DELAY);
        for _ in 0..RUNS {
            let before = proxy.trace().len();
            let start = Instant::now();
            let guard = soon(mutex.acquire()).await.unwrap();
            assert!(start.elapsed() >= DELAY * 2, "the replies must be delayed");
            let trace = awaited(&proxy.trace()[before..]);
            assert_eq!(requests(&trace), [OpCode::Create2, OpCode::GetChildren2]);
            assert_eq!((trace.len(), round_trips(&trace)), (4, 1), "{trace:#?}");
            soon(guard.release()).await.unwrap();
        }
    }

    async fn concurrent_calls_are_sent_together(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/folder", "", CreateMode::Persistent).await.unwrap();
        // The first ephemeral create of a session creates a marker first.
        client.create("/first", "", CreateMode::Ephemeral).await.unwrap();
        proxy.set_delay(Direction::ToClient, DELAY);
        for run in 0..RUNS {
            let before = proxy.trace().len();
            let path = format!("/folder/{run}");
            let (created, listed) =
                soon(async { tokio::join!(client.create(&path, "", CreateMode::Ephemeral), client.children("/folder")) }).await;
            created.unwrap();
            assert!(listed.unwrap().names.contains(&run.to_string()), "the listing must reflect the create");
            let trace = awaited(&proxy.trace()[before..]);
            assert_eq!((requests(&trace).len(), round_trips(&trace)), (2, 1), "{trace:#?}");
        }
    }

    async fn a_request_whose_future_was_dropped_before_it_was_sent_is_never_sent(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let before = proxy.trace().len();
        for polls in 0..3 {
            let mut given_up = Box::pin(client.create("/given-up", "", CreateMode::Persistent));
            for _ in 0..polls {
                assert!(poll!(given_up.as_mut()).is_pending());
            }
        }
        proxy.heal().await.unwrap();
        // A later request is sent after earlier ones.
        client.create("/sent", "", CreateMode::Persistent).await.unwrap();
        let creates = |frame: &&Traced| frame.is_request(OpCode::Create2);
        assert_eq!(proxy.trace()[before..].iter().filter(creates).count(), 1);
        assert_eq!(client.exists("/given-up").await.unwrap(), None);
    }

    async fn a_read_only_server_is_abandoned_for_the_next(backend: Backend) {
        let server = backend.start().await;
        let read_only = ReadOnly::start(server.net()).await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/a", "", CreateMode::Ephemeral).await.unwrap();
        client.update_servers(&format!("{},{}", proxy.connect_string(), read_only.address)).unwrap();
        until_met(&client, &proxy, || read_only.met.load(Ordering::SeqCst)).await;
        client.get("/a").await.unwrap();
    }

    async fn read_only_servers_are_not_mistaken_for_an_older_snapshot(backend: Backend) {
        let server = backend.start().await;
        let read_only = ReadOnly::start(server.net()).await;
        let proxy = server.proxy().await;
        let settings = builder(&server, proxy.connect_string()).session_timeout(Duration::from_secs(1));
        let client = settings.connect().await.unwrap();
        client.create("/a", "", CreateMode::Persistent).await.unwrap();
        client.update_servers(&format!("{},{}", proxy.connect_string(), read_only.address)).unwrap();
        proxy.cut().await;
        // After two timeouts, the client asks whether any server has the newest transaction that it saw.
        soon(async { while read_only.probed.load(Ordering::SeqCst) == 0 { docent_tests::pause().await } }).await;
        proxy.heal().await.unwrap();
        let state = soon(client.state().reached(ConnectionState::Connected)).await.unwrap();
        assert_eq!(state.rollbacks, 0);
        soon(client.get("/a")).await.unwrap();
    }

    async fn a_server_that_is_behind_is_abandoned_for_the_next(backend: Backend) {
        let server = backend.start().await;
        // With a seed, the server counts its transactions from 1.
        let behind = docent::server::Server::builder().seed(1);
        let behind = behind.start_on(server.net().clone()).await.unwrap();
        let other = server.proxy_of(behind.local_addr()).await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        client.create("/a", "", CreateMode::Ephemeral).await.unwrap();
        client.update_servers(&format!("{},{}", proxy.connect_string(), other.connect_string())).unwrap();
        let asked = |frame: &&Traced| frame.kind == FrameKind::Connect && frame.direction == Direction::ToServer;
        until_met(&client, &proxy, || other.trace().iter().filter(asked).count()).await;
        client.get("/a").await.unwrap();
        assert_eq!(behind.session_count(), 0);
    }

    async fn a_session_survives_a_restart_longer_than_the_lease(backend: Backend) {
        let server = backend.start_own().await;
        let client = ten_second_session(&server, server.front()).await;
        // Servers that were restarted give each session its full timeout again. The client gives up after
        // sixteen seconds.
        recovers(&client, Duration::from_secs(13), async || server.stop().await, async || server.start_again().await).await;
    }

    async fn a_session_survives_a_network_outage_longer_than_the_lease(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = ten_second_session(&server, &proxy).await;
        recovers(&client, Duration::from_secs(8), async || proxy.cut().await, async || proxy.heal().await.unwrap()).await;
    }
}
