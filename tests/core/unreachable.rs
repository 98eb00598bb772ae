//! Servers that cannot be reached or say nothing: operations end by their deadlines, and the client is idle meanwhile.

use docent::transport::{Io, ServerAddress, TcpTransport, Transport};
use docent::{Client, ClientBuilder, Error, ErrorKind};
use docent_testkit::Backend;
use docent_tests::soon;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

const DEADLINE: Duration = Duration::from_secs(1);
/// How late an operation may end on a busy machine.
const LATE: Duration = Duration::from_millis(700);
/// How long dials and CPU time are counted.
const WATCHED: Duration = Duration::from_secs(6);

/// Fails at once, or never.
#[derive(Debug, Clone)]
struct Broken {
    dials: Arc<AtomicUsize>,
    /// Connections to this port are never made; all other dials are those of TCP.
    silent: Option<u16>,
}

impl Transport for Broken {
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        TcpTransport.resolve(server)
    }

    fn dial<'a>(
        &'a self,
        server: &'a ServerAddress,
        address: SocketAddr,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        self.dials.fetch_add(1, Ordering::SeqCst);
        match self.silent {
            None => async { Err(io::ErrorKind::NetworkUnreachable.into()) }.boxed(),
            Some(port) if port == address.port() => std::future::pending().boxed(),
            Some(_) => TcpTransport.dial(server, address),
        }
    }
}

/// What this test's thread, on which the client runs, has spent so far.
fn cpu_time() -> Duration {
    let spent = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells a thread's CPU time");
    Duration::from_nanos(spent.split(' ').next().unwrap().parse().unwrap())
}

/// Runs operations of a client that has no server, one after the other, each to its deadline.
async fn ends_by_its_deadlines_and_is_idle(builder: ClientBuilder) {
    let builder = builder.operation_timeout(DEADLINE);
    let start = Instant::now();
    let error = soon(builder.clone().connect()).await.unwrap_err();
    in_time(start, &error);
    assert!(std::error::Error::source(&error).is_some(), "it says why: {error:?}");

    let client = builder.build().unwrap();
    let (start, spent) = (Instant::now(), cpu_time());
    while start.elapsed() + DEADLINE < WATCHED {
        let asked = Instant::now();
        in_time(asked, &soon(client.get("/")).await.unwrap_err());
    }
    let spent = cpu_time() - spent;
    assert!(spent < start.elapsed() / 20, "{spent:?} of CPU time in {:?}", start.elapsed());
    soon(client.close()).await;
}

fn in_time(start: Instant, error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(!error.may_have_applied());
    let took = start.elapsed();
    assert!(took < DEADLINE + LATE, "it ended after {took:?}");
}

#[tokio::test]
async fn operations_on_an_unreachable_network_end_by_their_deadlines_and_dials_are_few() {
    let dials = Arc::<AtomicUsize>::default();
    let transport = Broken { dials: dials.clone(), silent: None };
    ends_by_its_deadlines_and_is_idle(Client::builder("127.0.0.1:1").transport(transport)).await;
    // Two clients: one for the connect of a second, one for the rest. The first five attempts of each come faster.
    let seconds = usize::try_from((WATCHED + DEADLINE).as_secs()).unwrap();
    let dials = dials.load(Ordering::SeqCst);
    assert!(dials <= 2 * 5 + 3 * seconds, "{dials} dials in {seconds} s");
    assert!(dials >= seconds, "it gave up: {dials} dials in {seconds} s");
}

#[tokio::test]
async fn operations_on_a_mute_server_end_by_their_deadlines_and_links_are_few() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let builder =
        Client::builder(listener.local_addr().unwrap().to_string()).session_timeout(Duration::from_secs(2));
    let mut links = Vec::new();
    let accept = async {
        loop {
            links.push(listener.accept().await.unwrap());
        }
    };
    tokio::select! {
        () = accept => {}
        () = ends_by_its_deadlines_and_is_idle(builder) => {}
    }
    // Each attempt has a third of the timeout.
    assert!(links.len() >= 4 && links.len() <= 16, "{} links", links.len());
}

#[tokio::test]
async fn a_black_holed_server_among_two_does_not_keep_a_client_from_the_other() {
    let server = Backend::Embedded.start().await;
    let silent = 9;
    let transport = Broken { dials: Arc::default(), silent: Some(silent) };
    // Addresses are tried in random order: with so many clients some have the silent one first.
    let connect = (0..16).map(|_| {
        let (transport, connect_string) = (transport.clone(), server.connect_string());
        async move {
            let start = Instant::now();
            let client = Client::builder(format!("127.0.0.1:{silent},{connect_string}"))
                .session_timeout(Duration::from_secs(6))
                .transport(transport)
                .connect()
                .await
                .unwrap();
            client.get("/").await.unwrap();
            (start.elapsed(), client)
        }
    });
    let spent = cpu_time();
    let clients = soon(join_all(connect)).await;
    // An attempt with two servers has a sixth of the timeout, one second.
    let (quick, slow): (Vec<_>, Vec<_>) =
        clients.iter().map(|(time, _)| *time).partition(|time| *time < Duration::from_millis(900));
    assert!(!quick.is_empty() && !slow.is_empty(), "the order is random: {quick:?} {slow:?}");
    assert!(slow.iter().all(|time| *time < Duration::from_secs(2)), "{slow:?}");
    assert!(cpu_time() - spent < Duration::from_secs(1));
}

#[tokio::test]
async fn a_mute_server_among_two_does_not_keep_a_client_from_the_other() {
    let server = Backend::Embedded.start().await;
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute_address = mute.local_addr().unwrap();
    let connect = (0..16).map(|_| {
        let connect_string = server.connect_string();
        async move {
            let start = Instant::now();
            let client = Client::builder(format!("{mute_address},{connect_string}"))
                .session_timeout(Duration::from_secs(6))
                .connect()
                .await
                .unwrap();
            client.get("/").await.unwrap();
            (start.elapsed(), client)
        }
    });
    let clients = soon(join_all(connect)).await;
    assert!(
        clients.iter().any(|(time, _)| *time > Duration::from_millis(900)),
        "some met the mute one first"
    );
    assert!(clients.iter().all(|(time, _)| *time < Duration::from_secs(2)), "they took too long");
    drop(mute);
}
