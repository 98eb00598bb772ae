//! Servers that are unreachable or silent. Operations end by their deadlines, and the client is idle
//! meanwhile.

use docent::client::ClientBuilder;
use docent::transport::{Io, ServerAddress, TcpTransport, Transport};
use docent::{Client, CreateMode, Error, ErrorKind};
use docent_battery::Backend;
use docent_tests::{PATIENCE, soon, with_causes, within};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::fmt::Debug;
use std::fs;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;

const DEADLINE: Duration = Duration::from_secs(1);
/// Maximum delay of an operation's end after its deadline.
const LATE: Duration = Duration::from_millis(700);
/// Duration for which dials and CPU time are counted.
const WATCHED: Duration = Duration::from_secs(6);

/// A transport whose dials fail immediately or never complete.
#[derive(Debug, Clone)]
struct Broken {
    dials: Arc<AtomicUsize>,
    /// Connections to this port never complete; all other dials are plain TCP.
    silent: Option<u16>,
}

/// A resolver that never resolves a name.
#[derive(Debug)]
struct Unresolved;

impl Transport for Unresolved {
    fn resolve<'a>(&'a self, _: &'a ServerAddress) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        std::future::pending().boxed()
    }

    fn dial<'a>(&'a self, _: &'a ServerAddress, _: SocketAddr) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        std::future::pending().boxed()
    }
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

/// CPU time of this test's thread, on which the client runs.
fn cpu_time() -> Duration {
    let spent = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux reports a thread's CPU time");
    Duration::from_nanos(spent.split(' ').next().unwrap().parse().unwrap())
}

/// Runs operations of a client without a server, one after the other, each until its deadline.
async fn ends_by_its_deadlines_and_is_idle(builder: ClientBuilder) {
    let builder = builder.operation_timeout(DEADLINE);
    let error = by_deadline(builder.clone().connect()).await;
    assert!(error.to_string().starts_with("connect: no server answered in time: 127.0.0.1:"), "{error}");

    let client = builder.build().unwrap();
    let (start, spent) = (Instant::now(), cpu_time());
    while start.elapsed() + DEADLINE < WATCHED {
        by_deadline(client.get("/")).await;
    }
    let spent = cpu_time() - spent;
    assert!(spent < start.elapsed() / 20, "{spent:?} of CPU time in {:?}", start.elapsed());
    soon(client.close()).await;
}

/// Returns the error of an operation, which must end by its deadline.
async fn by_deadline<T: Debug>(operation: impl Future<Output = Result<T, Error>>) -> Error {
    let error = within(DEADLINE + LATE, operation).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(!error.may_have_applied());
    error
}

#[tokio::test]
async fn operations_on_an_unreachable_network_end_by_their_deadlines_and_dials_are_few() {
    let dials = Arc::<AtomicUsize>::default();
    let transport = Broken { dials: dials.clone(), silent: None };
    ends_by_its_deadlines_and_is_idle(Client::builder("127.0.0.1:1").transport(transport)).await;
    // There are two clients: one for the connect that takes a second, one for the rest. The first five
    // attempts of each client follow faster.
    let seconds = usize::try_from((WATCHED + DEADLINE).as_secs()).unwrap();
    let dials = dials.load(Ordering::SeqCst);
    // On average two dials per second, and at most three in a run of this length. `session/link/dialer.rs`
    // tests the average.
    assert!(dials <= 2 * 5 + 3 * seconds, "{dials} dials in {seconds} s");
    assert!(dials >= seconds, "the client gave up: {dials} dials in {seconds} s");
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
    // Each attempt lasts a third of the timeout.
    assert!(links.len() >= 4 && links.len() <= 16, "{} links", links.len());
}

#[tokio::test]
async fn an_operation_whose_first_attempt_is_in_flight_names_what_it_waits_for() {
    let silent = Broken { dials: Arc::default(), silent: Some(9) };
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute_address = mute.local_addr().unwrap();
    for (builder, waits_for) in [
        (Client::builder("127.0.0.1:9").transport(silent), "connecting to 127.0.0.1:9".to_owned()),
        (Client::builder("127.0.0.1:9").transport(Unresolved), "resolving \"127.0.0.1\"".to_owned()),
        (
            Client::builder(mute_address.to_string()),
            format!("waiting for {mute_address} to answer the handshake"),
        ),
    ] {
        // An attempt lasts a third of the timeout.
        let client = builder.session_timeout(PATIENCE * 3).operation_timeout(DEADLINE).build().unwrap();
        let error = by_deadline(client.get("/")).await;
        assert_eq!(with_causes(&error).split(": ").last(), Some(waits_for.as_str()), "{error:?}");
        let error = by_deadline(client.create("/a", "", CreateMode::Persistent)).await;
        assert_eq!(with_causes(&error).split(": ").last(), Some(waits_for.as_str()), "{error:?}");
        // The attempt in flight is not an error yet.
        assert_eq!(client.health().last_error, None);
    }
}

/// A name whose address changes.
#[derive(Debug, Clone)]
struct Moving {
    address: Arc<Mutex<SocketAddr>>,
    asked: Arc<AtomicUsize>,
}

impl Transport for Moving {
    fn resolve<'a>(&'a self, _: &'a ServerAddress) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let address = *self.address.lock().unwrap();
        async move { Ok(vec![address]) }.boxed()
    }

    fn dial<'a>(
        &'a self,
        server: &'a ServerAddress,
        address: SocketAddr,
    ) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        TcpTransport.dial(server, address)
    }
}

#[tokio::test]
async fn a_session_follows_the_name_of_its_server_to_another_address() {
    let server = Backend::Embedded.start().await;
    let (old, new) = (server.proxy().await, server.proxy().await);
    let name = Moving { address: Arc::new(Mutex::new(old.address())), asked: Arc::default() };
    let client = Client::builder("zk.example.org:2181").transport(name.clone()).connect().await.unwrap();
    let session = client.session_id();
    *name.address.lock().unwrap() = new.address();
    old.cut().await;
    soon(client.get("/")).await.unwrap();
    assert_eq!(client.session_id(), session);
    assert!(!new.trace().is_empty() && name.asked.load(Ordering::SeqCst) >= 2, "resolved only once");
    // The address changes back, after attempts at an address without a server.
    new.cut().await;
    let asked = name.asked.load(Ordering::SeqCst);
    soon(async {
        while name.asked.load(Ordering::SeqCst) < asked + 2 {
            docent_tests::pause().await;
        }
    })
    .await;
    old.heal().await.unwrap();
    *name.address.lock().unwrap() = old.address();
    soon(client.get("/")).await.unwrap();
    assert_eq!(client.session_id(), session);
}

#[tokio::test]
async fn a_black_holed_server_among_two_does_not_keep_a_client_from_the_other() {
    let server = Backend::Embedded.start().await;
    let silent = 9;
    // Addresses are tried in random order. With this many clients, some try the silent one first.
    let connect = (0..16).map(|_| {
        let transport = Broken { dials: Arc::default(), silent: Some(silent) };
        let connect_string = format!("127.0.0.1:{silent},{}", server.connect_string());
        async move {
            let client = Client::builder(connect_string)
                .session_timeout(Duration::from_secs(6))
                .transport(transport.clone())
                .connect()
                .await
                .unwrap();
            client.get("/").await.unwrap();
            (transport.dials.load(Ordering::SeqCst), client)
        }
    });
    let spent = cpu_time();
    // An attempt with two servers lasts a sixth of the timeout, one second.
    let clients = within(Duration::from_secs(2), join_all(connect)).await;
    let (one, two): (Vec<_>, Vec<_>) = clients.iter().map(|(dials, _)| *dials).partition(|dials| *dials == 1);
    assert!(!one.is_empty() && !two.is_empty(), "the order must be random: {one:?} {two:?}");
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
            let client = Client::builder(format!("{mute_address},{connect_string}"))
                .session_timeout(Duration::from_secs(6))
                .connect()
                .await
                .unwrap();
            client.get("/").await.unwrap();
            client
        }
    });
    let _clients = within(Duration::from_secs(2), join_all(connect)).await;
    assert!(mute.accept().now_or_never().is_some(), "some must try the mute server first");
}
