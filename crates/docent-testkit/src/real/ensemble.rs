use super::StartError;
use super::java::Java;
use super::peer_link::{CallBack, PeerLink};
use super::server::{Membership, PORT_ATTEMPTS, RealServer, blocking};
use crate::options::ServerOptions;
use crate::ports::Port;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Limits a process to one ensemble at a time, because three Java processes need a gigabyte.
static ONE_AT_A_TIME: Semaphore = Semaphore::const_new(1);
/// Runtime of all links, so that a test that blocks its thread does not stop messages between servers.
static LINKS: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_all().thread_name("peer-links").build();
    runtime.expect("a process that runs tests can start a thread")
});
const SIZE: usize = 3;
/// Maximum number of ticks for a server to follow a new leader.
const INIT_LIMIT: u32 = 10;
/// Shortens elections. With ZooKeeper's defaults, servers may take a minute to agree on a leader while one of
/// them is silent.
const ELECTION: [(&str, &str); 2] =
    [("zookeeper.fastleader.maxNotificationInterval", "1000"), ("zookeeper.cnxTimeout", "1000")];
const LEADER_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A real ensemble of three ZooKeeper servers. Each server can be killed, frozen, or cut off from the others.
///
/// The servers reach each other through links that can be cut. A server that is [cut off](Self::cut_off) gets
/// no notification, as when packets are lost. It continues to serve its clients until it notices.
///
/// # On drop
/// Does the same as [`RealServer`].
///
/// # Examples
/// ```no_run
/// # async fn run() -> Result<(), docent_testkit::StartError> {
/// let ensemble = docent_testkit::internals::RealEnsemble::start().await?;
/// let leader = ensemble.leader().await?;
/// ensemble.servers()[leader].stop();
/// println!("{}", ensemble.connect_string());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RealEnsemble {
    servers: Arc<Vec<RealServer>>,
    links: Vec<Between>,
    _permit: SemaphorePermit<'static>,
}

/// The links by which one server reaches another one.
#[derive(Debug)]
struct Between {
    from: usize,
    to: usize,
    /// One link for messages of a follower to a leader, and one for votes.
    links: [PeerLink; 2],
}

/// Ports on which the servers of an ensemble communicate and vote.
type MeetingPoints = Vec<[Port; 2]>;

impl RealEnsemble {
    /// Starts three servers with a tick of half a second, and waits until they serve.
    ///
    /// If this process has already started an ensemble, this method waits until that is dropped. A test that
    /// keeps one and starts a second therefore waits forever.
    ///
    /// # Errors
    /// If ZooKeeper is not installed, or one of the servers does not start.
    pub async fn start() -> Result<Self, StartError> {
        // With a shorter tick, servers on a busy machine consider each other dead.
        Self::start_with(ServerOptions::default().tick(Duration::from_millis(500))).await
    }

    /// Does the same as [`start`](Self::start), with options.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    pub async fn start_with(options: ServerOptions) -> Result<Self, StartError> {
        let permit = ONE_AT_A_TIME.acquire().await.map_err(io::Error::other)?;
        let options = ELECTION.iter().fold(options, |options, (name, value)| options.property(*name, *value));
        let mut attempt = 1;
        loop {
            match started(&options).await {
                Err(StartError::Ended { .. } | StartError::Io(_)) if attempt < PORT_ATTEMPTS => attempt += 1,
                Ok((servers, links)) => {
                    return Ok(Self { servers: Arc::new(servers), links, _permit: permit });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the three servers.
    pub fn servers(&self) -> &[RealServer] {
        &self.servers
    }

    /// Returns the addresses of all servers, for clients.
    pub fn connect_string(&self) -> String {
        self.servers.iter().map(RealServer::connect_string).collect::<Vec<_>>().join(",")
    }

    /// Returns the index of the leader. Waits until a server leads and another one follows it.
    ///
    /// # Errors
    /// If no server leads within a minute.
    pub async fn leader(&self) -> Result<usize, StartError> {
        let servers = Arc::clone(&self.servers);
        blocking(move || {
            let started = Instant::now();
            loop {
                let modes: Vec<_> = servers.iter().map(RealServer::mode_now).collect();
                let is = |mode: &str| modes.iter().position(|one| one.as_deref() == Some(mode));
                if let (Some(leader), Some(_)) = (is("leader"), is("follower")) {
                    return Ok(leader);
                }
                if started.elapsed() > LEADER_LIMIT {
                    return Err(StartError::NoLeader { seconds: LEADER_LIMIT.as_secs(), modes });
                }
                std::thread::sleep(POLL);
            }
        })
        .await
    }

    /// Cuts the links between one server and the others.
    pub fn cut_off(&self, server: usize) {
        let touched = self.links.iter().filter(|between| between.from == server || between.to == server);
        touched.flat_map(|between| &between.links).for_each(PeerLink::cut);
    }

    /// Restores all links.
    pub fn heal(&self) {
        self.links.iter().flat_map(|between| &between.links).for_each(PeerLink::heal);
    }
}

async fn started(options: &ServerOptions) -> Result<(Vec<RealServer>, Vec<Between>), StartError> {
    let (ports, links) = LINKS.spawn(open_links()).await.map_err(io::Error::other)??;
    let members: Vec<_> = (0..SIZE).map(|server| members(server, options, &ports, &links)).collect();
    let options = options.clone();
    let servers = blocking(move || start_all(&options, ports, members)).await?;
    Ok((servers, links))
}

async fn open_links() -> io::Result<(MeetingPoints, Vec<Between>)> {
    let claim_both = || Ok::<_, io::Error>([Port::claim()?, Port::claim()?]);
    let ports = (0..SIZE).map(|_| claim_both()).collect::<io::Result<MeetingPoints>>()?;
    let pairs =
        (0..SIZE).flat_map(|from| (0..SIZE).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let mut ends = pairs.map(|pair| Ok((pair, claim_both()?))).collect::<io::Result<BTreeMap<_, _>>>()?;
    let addresses: BTreeMap<_, _> =
        ends.iter().map(|(pair, ports)| (*pair, ports.each_ref().map(Port::address))).collect();
    let mut links = Vec::new();
    while let Some(((from, to), [near_quorum, near_votes])) = ends.pop_first() {
        let ([quorum, votes], back) = (&ports[to], addresses[&(to, from)]);
        let [_, own_votes] = &ports[from];
        let [_, votes_back] = back;
        let call_back = CallBack::new(own_votes.address(), votes_back);
        let both = [
            PeerLink::open(near_quorum, quorum.address(), None).await?,
            PeerLink::open(near_votes, votes.address(), Some(call_back)).await?,
        ];
        links.push(Between { from, to, links: both });
    }
    Ok((ports, links))
}

/// Returns the lines of one server's configuration that define the ensemble. The addresses of the other
/// servers are those of the links to them.
fn members(server: usize, options: &ServerOptions, ports: &MeetingPoints, links: &[Between]) -> String {
    let mut lines = format!("initLimit={INIT_LIMIT}\nsyncLimit={}\n", options.sync_limit);
    for (other, own) in ports.iter().enumerate() {
        let between = links.iter().find(|between| (between.from, between.to) == (server, other));
        // Servers that can be reconfigured adopt the addresses that the leader has, so these must be the same
        // for all of them.
        let [quorum, votes] = match between.filter(|_| !options.reconfig) {
            Some(between) => between.links.each_ref().map(PeerLink::address),
            None => own.each_ref().map(Port::address),
        };
        let _ = writeln!(lines, "server.{}=127.0.0.1:{}:{}", other + 1, quorum.port(), votes.port());
    }
    lines
}

fn start_all(
    options: &ServerOptions,
    ports: MeetingPoints,
    members: Vec<String>,
) -> Result<Vec<RealServer>, StartError> {
    let java = Java::find()?;
    let mut servers = Vec::new();
    for (index, (ports, members)) in ports.into_iter().zip(members).enumerate() {
        let membership = Membership { id: index + 1, members, _ports: ports };
        servers.push(RealServer::prepare(&java, options, Some(membership))?);
    }
    // No server serves before there is a quorum.
    for server in &servers {
        server.launch()?;
    }
    for server in &servers {
        server.until_it_serves()?;
    }
    Ok(servers)
}
