//! The search for servers in virtual time: unreachable addresses, names that no longer resolve, and the order
//! of dialling.

use crate::link::{Link, attached};
use bytes::BytesMut;
use docent_core::{Client, ClientBuilder, CreateMode, Dialled, Io, ServerAddress, TokioClock, Transport};
use docent_proto::{
    Code, ConnectRequest, Record, ReplyHeader, Request, RequestFrame, Response, Stat, write_frame,
};
use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Number of clients. The order of addresses is random; with this number, each address is tried first by some
/// client.
const CLIENTS: usize = 24;

/// What is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Site {
    /// Packets vanish.
    Hole,
    /// Nothing listens, and connections are refused.
    Unused,
    /// A server, with the time that a connection to it takes.
    Server(Duration),
}

use Site::{Hole, Server, Unused};

/// The servers behind one name.
#[derive(Debug, Clone)]
struct Net(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    sites: HashMap<SocketAddr, Site>,
    resolves: bool,
    /// Creates are not answered.
    holds_writes: bool,
    dialled: Vec<SocketAddr>,
    /// Links with their address, and the number of frames received.
    links: Vec<(SocketAddr, usize)>,
    /// Sessions that were opened or attached to.
    attached: Vec<(SocketAddr, i64)>,
    reset: watch::Sender<u32>,
}

impl Net {
    fn new(sites: impl IntoIterator<Item = Site>) -> Self {
        Self(Arc::new(Mutex::new(State {
            sites: (1..).map(address).zip(sites).collect(),
            resolves: true,
            holds_writes: false,
            dialled: Vec::new(),
            links: Vec::new(),
            attached: Vec::new(),
            reset: watch::Sender::new(0),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn builder(&self) -> ClientBuilder {
        let builder = Client::builder("zk.example.org:2181").transport(self.clone()).session_timeout(TIMEOUT);
        builder.operation_timeout(TIMEOUT * 2).clock(TokioClock::default())
    }

    /// The address of the last session that was opened or attached to.
    fn attached_to(&self) -> SocketAddr {
        self.state().attached.last().unwrap().0
    }

    /// Ends all links.
    fn reset(&self) {
        self.state().reset.send_modify(|resets| *resets += 1);
    }

    async fn serve(self, at: SocketAddr, mut client: Link) {
        let (link, mut reset) = {
            let mut state = self.state();
            state.links.push((at, 0));
            (state.links.len() - 1, state.reset.subscribe())
        };
        let mut connected = false;
        loop {
            let frame = tokio::select! {
                frame = client.next() => frame,
                _ = reset.changed() => None,
            };
            let Some(frame) = frame else { return };
            let mut out = BytesMut::new();
            self.state().links[link].1 += 1;
            if connected {
                self.answer(RequestFrame::decode(frame).unwrap(), &mut out);
            } else {
                connected = true;
                self.connect(at, &ConnectRequest::decode(frame).unwrap(), &mut out);
            }
            client.send(&out).await;
        }
    }

    fn connect(&self, at: SocketAddr, request: &ConnectRequest, out: &mut BytesMut) {
        let mut state = self.state();
        let session_id = if request.session_id == 0 {
            i64::try_from(state.attached.len()).unwrap() + 1
        } else {
            request.session_id
        };
        state.attached.push((at, session_id));
        attached(request, session_id, out);
    }

    fn answer(&self, frame: RequestFrame, out: &mut BytesMut) {
        let RequestFrame { xid, request } = frame;
        if self.state().holds_writes && request.is_write() {
            return;
        }
        write_frame(out, |out| {
            ReplyHeader { xid, zxid: 1, code: Code::OK }.write(out);
            match request {
                Request::Exists { .. } => Response::Stat(Stat::default()).write(out),
                Request::Create(create) => {
                    Response::Created { path: create.path, stat: Some(Stat::default()) }.write(out);
                }
                _ => {}
            }
        });
    }
}

impl Transport for Net {
    fn resolve<'a>(&'a self, _: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        Box::pin(async {
            let state = self.state();
            if !state.resolves {
                return Err(io::Error::other("no such name"));
            }
            Ok(state.sites.keys().copied().collect())
        })
    }

    fn dial<'a>(&'a self, _: &'a ServerAddress, at: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        let site = self.state().sites.get(&at).copied();
        self.state().dialled.push(at);
        Box::pin(async move {
            match site {
                Some(Hole) => pending().await,
                Some(Unused) | None => Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Server(after)) => {
                    sleep(after).await;
                    let (server, client) = Link::open();
                    tokio::spawn(self.clone().serve(at, server));
                    Ok(client)
                }
            }
        })
    }
}

fn address(number: u8) -> SocketAddr {
    ([10, 0, 0, number], 2181).into()
}

#[tokio::test(start_paused = true)]
async fn dead_addresses_of_a_name_do_not_keep_a_client_from_the_working_one() {
    for _ in 0..CLIENTS {
        let net = Net::new([Hole, Hole, Server(Duration::ZERO)]);
        let start = Instant::now();
        let client = net.builder().connect().await.unwrap();
        assert!(start.elapsed() <= Duration::from_secs(1), "{:?}", start.elapsed());
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_servers_dialled_simultaneously_only_one_receives_the_session() {
    for _ in 0..CLIENTS {
        // The second attempt starts while the first is in progress, and may finish first.
        let net = Net::new([Server(Duration::from_millis(400)), Server(Duration::from_millis(150)), Hole]);
        let client = net.builder().connect().await.unwrap();
        client.exists("/a").await.unwrap();
        sleep(TIMEOUT).await;
        assert_eq!(net.state().attached.len(), 1);
        let links = net.state().links.clone();
        assert_eq!(links.iter().filter(|(_, frames)| *frames > 0).count(), 1, "{links:?}");
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_no_longer_resolves_keeps_its_last_known_addresses() {
    let net = Net::new([Server(Duration::ZERO)]);
    let client = net.builder().connect().await.unwrap();
    let session = client.session_id();
    net.state().resolves = false;
    net.state().sites.insert(address(1), Unused);
    net.reset();
    assert!(timeout(Duration::from_secs(5), client.exists("/a")).await.is_err());
    let error = client.health().last_error.unwrap();
    assert!(error.contains("could not resolve \"zk.example.org\": no such name"), "{error}");
    net.state().sites.insert(address(1), Server(Duration::ZERO));
    client.exists("/a").await.unwrap();
    assert_eq!((client.session_id(), client.health().last_error), (session, None));
    // The current address counts more than the previous one.
    net.state().resolves = true;
    net.state().sites = HashMap::from([(address(2), Server(Duration::ZERO))]);
    net.reset();
    client.exists("/a").await.unwrap();
    assert_eq!((client.session_id(), net.attached_to()), (session, address(2)));
    client.close().await;
}

/// A client that was attached to the returned address, and has lost its link while a write was unanswered.
async fn abandoned_with_a_write(net: &Net) -> (Client, SocketAddr) {
    let client = net.builder().connect().await.unwrap();
    let abandoned = net.attached_to();
    net.state().holds_writes = true;
    let create = client.create("/a", "", CreateMode::Persistent);
    assert!(timeout(Duration::from_secs(1), create).await.is_err());
    net.state().holds_writes = false;
    (client, abandoned)
}

#[tokio::test(start_paused = true)]
async fn a_server_with_unanswered_writes_is_dialled_last() {
    for _ in 0..CLIENTS {
        let net = Net::new([Server(Duration::ZERO); 3]);
        let (client, abandoned) = abandoned_with_a_write(&net).await;
        // The other servers are slower than any head start.
        for (at, site) in &mut net.state().sites {
            if *at != abandoned {
                *site = Server(Duration::from_secs(1));
            }
        }
        net.reset();
        client.exists("/a").await.unwrap();
        assert_ne!(net.attached_to(), abandoned);
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_unanswered_writes_is_dialled_if_there_is_no_other() {
    for other in [Hole, Unused] {
        let net = Net::new([Server(Duration::ZERO); 3]);
        let (client, abandoned) = abandoned_with_a_write(&net).await;
        for (at, site) in &mut net.state().sites {
            if *at != abandoned {
                *site = other;
            }
        }
        net.state().dialled.clear();
        net.reset();
        client.exists("/a").await.unwrap();
        assert_eq!(net.attached_to(), abandoned);
        assert_eq!(net.state().dialled.iter().position(|at| *at == abandoned), Some(2));
        client.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_only_server_with_unanswered_writes_is_dialled_immediately() {
    let net = Net::new([Server(Duration::ZERO)]);
    let (client, abandoned) = abandoned_with_a_write(&net).await;
    sleep(Duration::from_secs(1)).await;
    net.reset();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(net.attached_to(), abandoned);
    assert_eq!(net.state().attached.len(), 2);
    client.close().await;
}
