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

/// Three Java processes take a gigabyte: there is one ensemble at a time in a process.
static ONE_AT_A_TIME: Semaphore = Semaphore::const_new(1);
/// Runtime of all links: a test that blocks its thread for a moment must not stop messages between servers.
static LINKS: LazyLock<Runtime> = LazyLock::new(|| {
    let runtime =
        Builder::new_multi_thread().worker_threads(1).enable_all().thread_name("peer-links").build();
    runtime.expect("a process that runs tests can start a thread")
});
const SIZE: usize = 3;
/// Time in ticks that a server may take to follow a new leader.
const INIT_LIMIT: u32 = 10;
/// With the defaults, servers that do not hear from one of them may take a minute to agree on a leader.
const ELECTION: [(&str, &str); 2] =
    [("zookeeper.fastleader.maxNotificationInterval", "1000"), ("zookeeper.cnxTimeout", "1000")];
const LEADER_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A real ensemble of three ZooKeeper servers, each of which can be killed, frozen and cut off from the
/// others.
///
/// Servers reach each other through links, which can be cut: a server that is [cut off](Self::cut_off) is
/// not told, as when packets are lost. It serves its clients until it finds out by itself.
///
/// # On drop
/// As for [`RealServer`].
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
    /// One for messages of a follower to a leader, one for votes.
    links: [PeerLink; 2],
}

/// Ports on which the servers of an ensemble meet each other and vote.
type MeetingPoints = Vec<[Port; 2]>;

impl RealEnsemble {
    /// Starts three servers with a tick of half a second, and waits until they serve.
    ///
    /// It waits for an ensemble of this process that was started before: a test that asks for a second one
    /// waits for ever.
    ///
    /// # Errors
    /// When ZooKeeper is not installed, or one of them does not come up.
    pub async fn start() -> Result<Self, StartError> {
        // With a shorter one, servers of a busy machine take each other for dead.
        Self::start_with(ServerOptions::default().tick(Duration::from_millis(500))).await
    }

    /// As [`start`](Self::start), with options.
    ///
    /// # Errors
    /// As [`start`](Self::start).
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

    /// The servers, three of them.
    pub fn servers(&self) -> &[RealServer] {
        &self.servers
    }

    /// The addresses for clients: those of all servers.
    pub fn connect_string(&self) -> String {
        self.servers.iter().map(RealServer::connect_string).collect::<Vec<_>>().join(",")
    }

    /// The index of the leader. Waits until a server leads and another follows it.
    ///
    /// # Errors
    /// When none does within a minute.
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

    /// Mends all links.
    pub fn mend(&self) {
        self.links.iter().flat_map(|between| &between.links).for_each(PeerLink::mend);
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

/// Lines of one server's configuration that name the ensemble: the others are where its links begin.
fn members(server: usize, options: &ServerOptions, ports: &MeetingPoints, links: &[Between]) -> String {
    let mut lines = format!("initLimit={INIT_LIMIT}\nsyncLimit={}\n", options.sync_limit);
    for (other, own) in ports.iter().enumerate() {
        let between = links.iter().find(|between| (between.from, between.to) == (server, other));
        let [quorum, votes] = match between {
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
    // None serves before there is a quorum.
    for server in &servers {
        server.launch()?;
    }
    for server in &servers {
        server.until_it_serves()?;
    }
    Ok(servers)
}
