use crate::config::{Config, SuperUser, Words};
use crate::keep::Keep;
use crate::net::{Bind, TcpBind};
use crate::time::Clock;
use crate::{Limits, Server, StartError};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Settings of a [`Server`] to start.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct Builder {
    config: Config,
    address: SocketAddr,
    allow_remote: bool,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { config: Config::default(), address: (Ipv4Addr::LOCALHOST, 0).into(), allow_remote: false }
    }

    /// Sets the unit of session expiry; default 2 s. A session ends at the end of the tick in which its
    /// timeout does.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.config.tick = tick;
        self
    }

    /// Sets the shortest and the longest session timeout granted; default 2 and 20 ticks.
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> Self {
        self.config.session_timeouts = Some((min, max));
        self
    }

    /// Sets how often containers without children, and nodes whose time to live is over, are looked for;
    /// default every 60 s.
    pub fn container_check(mut self, interval: Duration) -> Self {
        self.config.container_check = interval;
        self
    }

    /// Lets clients create nodes with a time to live, as `extendedTypesEnabled` does; default off, for the
    /// code [`UNIMPLEMENTED`](docent_proto::Code::UNIMPLEMENTED). Such a node is deleted when it has no child
    /// and its data was not set for longer than its time, with the next [look](Self::container_check) for
    /// containers.
    pub fn ttl_nodes(mut self, ttl_nodes: bool) -> Self {
        self.config.ttl_nodes = ttl_nodes;
        self
    }

    /// Names a user that may do everything whatever access control lists say; default none. `digest` is what
    /// ZooKeeper takes as `DigestAuthenticationProvider.superDigest`: the user, a colon, and the SHA-1 of
    /// `user:password` in Base64. Clients become that user by the scheme `digest` and `user:password`.
    ///
    /// ```
    /// # use docent_server::Server;
    /// // echo -n super:secret | openssl dgst -sha1 -binary | base64
    /// let builder = Server::builder().super_digest("super:lK75jTNcA+U9vtVEw5vB51mj/w4=");
    /// ```
    pub fn super_digest(mut self, digest: impl Into<String>) -> Self {
        self.config.super_user = Some(SuperUser(digest.into()));
        self
    }

    /// Sets the port on 127.0.0.1 to listen on; default 0, which is any free one.
    pub fn port(mut self, port: u16) -> Self {
        self.address.set_port(port);
        self
    }

    /// Sets the address to listen on; default 127.0.0.1 and any free port.
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Permits an address that others than this machine can reach. The server has neither TLS nor a durable
    /// store: think twice.
    pub fn allow_remote(mut self) -> Self {
        self.allow_remote = true;
        self
    }

    /// Sets the limits of clients.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Keeps a list of all committed transactions, which grows for as long as the server lives; default off.
    pub fn journal(mut self, journal: bool) -> Self {
        self.config.journal = journal;
        self
    }

    /// Sets which four-letter words are answered, as ZooKeeper's `4lw.commands.whitelist` does; default `*`,
    /// which is all of them. `srvr` is always one of them, and the only one that a real server answers unless
    /// it is told otherwise. The others are answered with a line that says so.
    ///
    /// Anybody who reaches the port may send one, without a session or a password: `wchc`, `wchp`, `cons` and
    /// `dump` show the ids of sessions, the addresses of clients and the paths that they watch, whatever
    /// access control lists say, and `crst` and `srst` begin counts anew. Think of that where the server
    /// listens for other machines.
    ///
    /// ```
    /// # use docent_server::Server;
    /// let builder = Server::builder().four_letter_words(["ruok", "srvr", "mntr"]);
    /// ```
    pub fn four_letter_words<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.config.words = Words::listed(words.into_iter().map(Into::into).collect());
        self
    }

    /// Says in the header of an event which transaction it tells of, as ZooKeeper does from 3.9 on; default
    /// off, for −1 as in 3.8. Events that a client is told when it sets its watches again have −1 in either
    /// case.
    ///
    /// A transaction may have several events, and the link may be lost between two: that number does not say
    /// which events were seen.
    pub fn zxid_in_events(mut self, zxid: bool) -> Self {
        self.config.zxid_in_events = zxid;
        self
    }

    /// Sets the seed of session passwords, so that runs of a simulation repeat. The first transaction has
    /// number 1 then. Without a seed passwords are random, and that number comes from the
    /// [clock](Self::clock), as the ids of sessions do in either case.
    ///
    /// It is twice the time in microseconds then, which is below 2^53 until 2112: JavaScript clients can tell
    /// each transaction from the next. A server that takes the place of another one is ahead of all that the
    /// clients of that have seen, unless the other one committed more than two million transactions per
    /// second on average. With a seed it may be behind, as one that was restored from an older copy, and such
    /// clients are refused.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = Some(seed);
        self
    }

    /// Sets the server's clock: the time since 1970, or since another origin, which is then that of the times
    /// in the journal and in stats. It must advance as tokio's clock does; should it go back, the server's
    /// time stands still meanwhile. The function is called often, and must not call the server. Default: the
    /// system's time at the start, and tokio's from there on.
    ///
    /// A simulation gives its own virtual time here, and so gets the same session ids, ticks and times in
    /// each run. The times in the journal are then milliseconds of virtual time, also where hosts have tokio
    /// clocks of their own, which do not compare with each other:
    ///
    /// ```
    /// # use docent_server::Server;
    /// # use std::time::Duration;
    /// # mod turmoil { pub fn sim_elapsed() -> Option<std::time::Duration> { None } }
    /// let builder = Server::builder().seed(7).clock(|| turmoil::sim_elapsed().unwrap_or_default());
    /// ```
    pub fn clock(mut self, time: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.config.clock = Some(Clock::new(time));
        self
    }

    /// Keeps the state in a file between a clean stop and the next start: the tree with its access control
    /// lists, the sessions with their passwords and timeouts, and the number of the last transaction. Watches
    /// belong to links, and the [journal](Self::journal) begins anew. Without a file the server begins empty,
    /// and one that cannot be read is refused and left as it is.
    ///
    /// This is **not durable**: only [`Server::stop`] writes the state, to another file first, which then
    /// takes the place of the old one. When the process is killed, or the server is only dropped, everything
    /// since the start is lost, and so are all sessions: the next server has the nodes of the last stop that
    /// were not ephemeral, and tells each client that its session has ended. Durability is what a ZooKeeper
    /// ensemble is for.
    ///
    /// Transactions are numbered from the kept number or the time on, whichever is larger, so that clients
    /// never see their server go back. Versions before this one had numbers above 2^53. A server that loads
    /// such a number continues from there; deleting the file ends that.
    ///
    /// A session that was kept has its full timeout after the start. The file is readable by its owner alone.
    ///
    /// The server locks the file until it has stopped or its process has ended. A second server on the same
    /// file is refused with [`KeepFault::InUse`](crate::KeepFault::InUse). The lock is on a second, hidden
    /// file in the same folder, with `.lock` at the end of its name. A server that is killed leaves that file
    /// behind, which does no harm.
    pub fn keep(mut self, file: impl Into<PathBuf>) -> Self {
        self.config.keep = Some(Keep::new(file.into()));
        self
    }

    /// Starts the server on TCP.
    ///
    /// # Errors
    /// [`StartError`] when the address is not allowed or cannot be had, or the file of [`keep`](Self::keep)
    /// not be used.
    ///
    /// # Cancel safety
    /// This method is cancel safe, but sessions that were [kept](Self::keep) may have been taken out of their
    /// file.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn start(self) -> Result<Server, StartError> {
        self.start_on(TcpBind::default()).await
    }

    /// Starts the server on listeners of another kind.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    /// As [`start`](Self::start).
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled.
    pub async fn start_on<B: Bind>(self, bind: B) -> Result<Server, StartError> {
        if !self.allow_remote && !self.address.ip().is_loopback() {
            return Err(StartError::NotLoopback(self.address));
        }
        Server::launch(self.config, bind, self.address).await
    }
}
