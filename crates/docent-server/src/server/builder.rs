use crate::config::{Config, SuperUser, Words};
use crate::keep::Keep;
use crate::net::{Bind, TcpBind};
use crate::time::Clock;
use crate::{Dialect, Limits, Server, StartError};
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

    /// Sets the unit of session expiry; default 2 s. A session expires at the end of the tick in which its
    /// timeout ends.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.config.tick = tick;
        self
    }

    /// Sets the minimum and maximum session timeout; default 2 and 20 ticks.
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> Self {
        self.config.session_timeouts = Some((min, max));
        self
    }

    /// Sets the interval at which the server deletes empty containers and nodes whose time to live has
    /// passed; default 60 s.
    pub fn container_check(mut self, interval: Duration) -> Self {
        self.config.container_check = interval;
        self
    }

    /// Sets whether clients may create nodes with a time to live, as `extendedTypesEnabled` does; default
    /// `false`, which fails with [`UNIMPLEMENTED`](docent_proto::Code::UNIMPLEMENTED). If such a node has no
    /// children and its data was not set within its time to live, the next [container
    /// check](Self::container_check) deletes it.
    pub fn ttl_nodes(mut self, ttl_nodes: bool) -> Self {
        self.config.ttl_nodes = ttl_nodes;
        self
    }

    /// Sets the dialect that clients are answered in; default [`Dialect::ZooKeeper`]. Followers start with
    /// the dialect of the server.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.config.dialect = dialect;
        self
    }

    /// Sets a super user, who passes every access control check; default none. `digest` has the format of
    /// ZooKeeper's `DigestAuthenticationProvider.superDigest`: the user name, a colon, and the SHA-1 of
    /// `user:password` in Base64. A client becomes the super user by authenticating with the scheme `digest`
    /// and `user:password`.
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

    /// Adds a user that clients can authenticate as with SASL, mechanism DIGEST-MD5, as in the JAAS file of a
    /// ZooKeeper server; default none. Without users, the server answers like one that does not offer SASL.
    /// Access control lists may then name the scheme `sasl`, with the user as the id.
    pub fn sasl_user(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.config.sasl_users.0.insert(user.into(), password.into());
        self
    }

    /// Refuses every request on links that have not authenticated with SASL, and closes such links, as
    /// ZooKeeper's `sessionRequireClientSASLAuth` does; default off.
    pub fn require_sasl(mut self) -> Self {
        self.config.require_sasl = true;
        self
    }

    /// Sets the port on 127.0.0.1 to listen on; default 0, which means any free port.
    pub fn port(mut self, port: u16) -> Self {
        self.address.set_port(port);
        self
    }

    /// Sets the address to listen on; default 127.0.0.1 and any free port.
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Permits an address that other machines can reach. Use it with care: the server has neither TLS nor
    /// durable storage.
    pub fn allow_remote(mut self) -> Self {
        self.allow_remote = true;
        self
    }

    /// Sets the limits on the resources of clients.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Sets whether to keep a list of all committed transactions, which grows as long as the server runs;
    /// default `false`.
    pub fn journal(mut self, journal: bool) -> Self {
        self.config.journal = journal;
        self
    }

    /// Sets which four-letter words are answered, as ZooKeeper's `4lw.commands.whitelist` does; default `*`,
    /// which means all of them. `srvr` is always answered. By default, a real server answers only `srvr`. For
    /// any other word, the answer is a line that says that the word is not allowed.
    ///
    /// Anyone who can reach the port can send these words, without a session or a password. `wchc`, `wchp`,
    /// `cons` and `dump` disclose session ids, client addresses and watched paths, regardless of access
    /// control lists; `crst` and `srst` reset counters. Restrict the words if the server listens for other
    /// machines.
    ///
    /// ```
    /// # use docent_server::Server;
    /// let builder = Server::builder().four_letter_words(["ruok", "srvr", "mntr"]);
    /// ```
    pub fn four_letter_words<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.config.words = Words::listed(words.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether the header of a watch event contains the transaction that caused it, as in ZooKeeper 3.9
    /// and later; default `false`, for −1 as in 3.8. Events about changes that a client missed before it
    /// re-registered its watches always have −1.
    ///
    /// The number does not show which events a client has received: a transaction may have several events,
    /// and the link may be lost between two of them.
    pub fn zxid_in_events(mut self, zxid: bool) -> Self {
        self.config.zxid_in_events = zxid;
        self
    }

    /// Sets the seed of session passwords, so that simulation runs are reproducible. The first transaction
    /// then has number 1. Without a seed, passwords are random, and the number of the first transaction comes
    /// from the [clock](Self::clock). Session ids come from the clock in either case.
    ///
    /// Without a seed, the first number is twice the time in microseconds. It stays below 2^53 until 2112, so
    /// JavaScript clients can distinguish consecutive transactions. A server that replaces another one starts
    /// above all numbers that the other server's clients have seen. The exception is a server that committed
    /// more than two million transactions per second on average. With a seed, a replacement may start below
    /// those numbers, like a server restored from an older snapshot. Such clients are then refused.
    pub fn seed(mut self, seed: u64) -> Self {
        self.config.seed = Some(seed);
        self
    }

    /// Sets the server's clock: the time since 1970, or since another origin. Times in the journal and in
    /// stats then refer to that origin. The clock must advance at the same rate as tokio's clock. If it goes
    /// back, the server's time pauses meanwhile. The function is called often, and must not call the server.
    /// The default is the system time at the start, advanced by tokio's clock.
    ///
    /// A simulation sets its own virtual time here, and so gets the same session ids, ticks and times in each
    /// run. The times in the journal are then milliseconds of virtual time, even if each host has its own
    /// tokio clock, which cannot be compared with the others:
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

    /// Keeps the state in a file between a clean stop and the next start. The state consists of the tree with
    /// its access control lists, the sessions with their passwords and timeouts, and the number of the last
    /// transaction. It does not contain watches, which belong to links, nor the [journal](Self::journal). If
    /// there is no file, the server starts empty. If the file cannot be read, the start fails and leaves the
    /// file unchanged.
    ///
    /// This is **not durable**: only [`Server::stop`] and [`Server::try_stop`] save the state, first to
    /// another file, which then replaces the old one. If the process is killed, or the server is merely
    /// dropped, all changes since the start are lost, and so are all sessions. The next server then has the
    /// persistent nodes of the last stop, and reports to each client that its session has expired. If you
    /// need durability, use a ZooKeeper ensemble.
    ///
    /// Transactions are numbered from the saved number or the time, whichever is larger, so clients never see
    /// the server go back. Earlier versions used numbers above 2^53. A server that loads such a number
    /// continues from there, until the file is deleted.
    ///
    /// A saved session gets its full timeout after the start. Only the owner of the file can read it.
    ///
    /// The server locks the file until it has stopped or its process has ended. A second server on the same
    /// file fails with [`KeepFault::InUse`](crate::KeepFault::InUse). The lock is held on a second, hidden
    /// file in the same folder, whose name ends in `.lock`. A server that is killed leaves that file behind,
    /// which is harmless.
    pub fn keep(mut self, file: impl Into<PathBuf>) -> Self {
        self.config.keep = Some(Keep::new(file.into()));
        self
    }

    /// Starts the server on TCP.
    ///
    /// # Errors
    /// [`StartError`] if the address is not permitted or not available, or if the file of
    /// [`keep`](Self::keep) cannot be used.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: sessions that were [kept](Self::keep) may have been removed from
    /// their file.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn start(self) -> Result<Server, StartError> {
        self.start_on(TcpBind::default()).await
    }

    /// Starts the server on a custom kind of listener.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    ///
    /// # Cancel safety
    /// See [`start`](Self::start).
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
