use super::ensemble_tracker;
use super::granted_timeout::check_requested;
use super::supervisor::supervise;
use super::thread::Thread;
use super::{Client, Config, ConnectionState, ParentKind, RollbackPolicy, StateWatcher};
use crate::cleanup::Cleanup;
use crate::error::{Error, ErrorKind};
use crate::node::Acl;
use crate::node::identity::broken_rule;
use crate::node::namespace::Namespace;
use crate::operation::Shared;
use crate::session::connect_string::{ConnectString, ServerAddress, without_credentials};
#[cfg(feature = "tls")]
use crate::session::link::tls::Tls;
use crate::session::link::transport::Transport;
#[cfg(feature = "zookeeper-client")]
use crate::session::zookeeper_client::ZookeeperClient;
use crate::session::{Credentials, Sasl};
use crate::time::{Clock, RetryPolicy};
use secrecy::{SecretSlice, SecretString};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Range of a server's tick in milliseconds. With a longer tick, the longest session timeout is below four
/// ticks, which is too short for a lease.
const TICKS: RangeInclusive<u128> = 1..=i32::MAX as u128 / 4;
/// Minimum number of requests that may wait. A recipe sends several together, such as the creates of a path's
/// parents before that of its node.
const WAITING: usize = 16;

/// Settings of a client. The defaults are safe.
#[derive(Clone)]
#[must_use = "a builder does nothing until `connect` or `build` is called"]
pub struct ClientBuilder {
    connect_string: String,
    config: Config,
}

impl ClientBuilder {
    pub(super) fn new(connect_string: &str) -> Self {
        Self { connect_string: connect_string.to_owned(), config: Config::default() }
    }

    /// Places all paths of this client below `path`, which is created on demand. The namespace is below the
    /// chroot of the connect string, if there is one. Folders named `_docent` or `_docent-…` are reserved.
    pub fn namespace(mut self, path: impl Into<String>) -> Self {
        self.config.namespace = path.into();
        self
    }

    /// Sets the session timeout to request. Default 20 s, at least 1 ms, at most 2^31 − 1 ms.
    ///
    /// The servers grant a timeout between their `minSessionTimeout` and their `maxSessionTimeout`, by
    /// default two and 20 ticks: 4 s and 40 s with the usual tick of 2 s. If they grant another timeout than
    /// requested, the client logs a warning once, with both. [`Client::session_timeout`] and
    /// [`Health`](crate::Health::session_timeout) have the granted one.
    ///
    /// A timeout below four [ticks](Self::server_tick) is too short for a lease: locks, elections and other
    /// guards then fail with `ShortLease`, unless [accepted](Self::accept_short_lease). The client warns of
    /// it when it is built.
    ///
    /// If the servers receive nothing from the client for this long, they expire the session. Locks are
    /// certain for two thirds of the timeout after the last acknowledged write was sent, or less if the
    /// timeout is short; see [`server_tick`](Self::server_tick).
    ///
    /// An attempt to connect to one address takes at most a third of the timeout, or 250 ms if that is more.
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.config.session_timeout = timeout;
        self
    }

    /// Sets the time limit of an operation, including queueing, retries and the wait for a link. Default 15
    /// s. It does not limit the wait in the line of a lock.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.config.operation_timeout = timeout;
        self
    }

    /// Sets the policy that decides when operations are retried. Default [`RetryPolicy::exponential`].
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.config.retry = policy;
        self
    }

    /// Sets the servers' `tickTime`. Default 2 s, as in ZooKeeper's sample configuration; from 1 ms to a
    /// quarter of the longest session timeout.
    ///
    /// From the client's point of view, a server may expire a session up to a tick early. The lease of locks
    /// therefore leaves a tick unused. A value below the servers' `tickTime` makes leases unsafe.
    pub fn server_tick(mut self, tick: Duration) -> Self {
        self.config.server_tick = tick;
        self
    }

    /// Grants locks although the session timeout is below four server ticks. The leases of such locks have
    /// less margin than a follower that was cut off may need: another client may get a lock before its
    /// previous holder knows of the loss.
    pub fn accept_short_lease(mut self) -> Self {
        self.config.accept_short_lease = true;
        self
    }

    /// Lets caches use persistent watches, and with them the views, memberships and configuration trees that
    /// build on caches. One persistent watch on a folder or tree reports each change below it, so creating,
    /// changing or deleting a child costs one read. Off by default: then caches use one-shot watches, which
    /// every server supports, and list a folder again for each new child.
    ///
    /// Servers support persistent watches from 3.6 on. An older server closes the link when a cache requests
    /// one. Caches then use one-shot watches on links to that server, and request persistent watches again
    /// only on links opened at least ten minutes later. Sessions of the crate `zookeeper-client` do not use
    /// persistent watches.
    ///
    /// # Assumptions
    /// The children in a `ChildrenCache` have few nodes below them: the servers also report every change of
    /// those nodes, which the cache does not need. Newer servers do not report nodes that this client may not
    /// read. A child that was created unreadable therefore appears as unreadable only when everything is read
    /// again.
    pub fn persistent_watches(mut self) -> Self {
        self.config.persistent_watches = true;
        self
    }

    /// Follows the servers' own list of servers, which `reconfig` changes, like Curator's `EnsembleTracker`.
    /// Off by default. Needs ZooKeeper 3.5 or newer, and the permission to read `/zookeeper/config`; without
    /// them the list stays as it is.
    ///
    /// The client connects to each announced address before it uses the list. It skips addresses that it
    /// cannot reach, such as those of an internal network, and tries them again each minute. If it can reach
    /// none, its list stays unchanged. If a server listens on all of its addresses (`0.0.0.0`), the client
    /// uses the server's host with the port for clients. Servers announce the port without TLS, so a client
    /// with TLS keeps its list. [`Client::update_servers`] replaces the list until the ensemble changes
    /// again.
    pub fn track_ensemble(mut self) -> Self {
        self.config.track_ensemble = true;
        self
    }

    /// Runs the session on a dedicated thread, so that code which blocks the runtime's threads cannot starve
    /// the heartbeat that keeps locks. The client's other tasks, such as caches and cleanups, run on a second
    /// thread. The cost is these two threads, and a hop between threads for each request.
    ///
    /// Codecs, filters and validations of views do not need this setting, because they run on a thread for
    /// blocking code in any case.
    pub fn dedicated_thread(mut self) -> Self {
        self.config.dedicated_thread = true;
        self
    }

    /// Calls codecs, filters and validations in the task of the view that they belong to, instead of on a
    /// thread for blocking code of the client's runtime. For simulations, which must run on one thread. A
    /// hook that blocks then blocks the runtime, and may cost every lock of the client.
    pub fn inline_hooks(mut self) -> Self {
        self.config.inline_hooks = true;
        self
    }

    /// Sets the policy for servers that were restored from an older snapshot. By default the client stops.
    /// Such servers refuse a client that has seen newer transactions; the client detects the restore after
    /// two session timeouts of refusals.
    pub fn on_rollback(mut self, policy: RollbackPolicy) -> Self {
        self.config.on_rollback = policy;
        self
    }

    /// Gives up the session if the servers permanently refuse to delete a node that the client left in a
    /// line, because permission DELETE on the parent is missing. Such a node keeps other clients waiting for
    /// as long as its session lives.
    ///
    /// By default the refusal is logged as an error, and a caller that waits for the release gets
    /// [`NoAuth`](ErrorKind::NoAuth). With this setting, in addition, all other guards of the session are
    /// lost with [`SessionAbandoned`](crate::LostReason::SessionAbandoned). Once they are dropped, the
    /// session is closed at the servers, which deletes the node. The client continues in a new session.
    pub fn end_session_on_refused_delete(mut self) -> Self {
        self.config.end_session_on_refused_delete = true;
        self
    }

    /// Sets the kind of node that missing parents are created as. Default: containers. Registries and
    /// memberships have their own setting.
    pub fn parents(mut self, kind: ParentKind) -> Self {
        self.config.parents = kind;
        self
    }

    /// Restricts the client to reads, for tools that must also work without a quorum.
    ///
    /// If no server with a quorum accepts the client, it connects to a server in read-only mode. ZooKeeper
    /// needs `readonlymode.enabled` and `localSessionsEnabled` for this. The state is then
    /// [`ReadOnly`](ConnectionState::ReadOnly), and reads may be arbitrarily old. After five minutes on such
    /// a server the client leaves it to look for one with a quorum. Each lost connection ends the session.
    ///
    /// Every write fails with [`ReadOnly`](crate::ErrorKind::ReadOnly) and is not sent, so this client
    /// acquires no lock and keeps no node. `sync` fails with the same kind while the state is `ReadOnly`.
    /// Default: a client that also writes, and never uses a server in read-only mode.
    pub fn read_only(mut self) -> Self {
        self.config.read_only = true;
        self
    }

    /// Sets the label in the client's [identity](crate::ClientIdentity) and in logs and metrics. It
    /// distinguishes the clients of one process: the name of the service or of the job. One line of at most
    /// 128 bytes. Default: none; logs and metrics then show the client's number in its process, from 1 on.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.config.label = Some(label.into());
        self
    }

    /// Sets the identity written into the nodes of locks, permits and claims, for people and tools that
    /// inspect them. Default: the host, the process and the [label](Self::label), in the format of
    /// [`ClientIdentity`](crate::ClientIdentity). A custom text is written unchanged, without host, process
    /// and label.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.config.identity = Some(identity.into());
        self
    }

    /// Sets the largest request in bytes. Default 1 MiB − 1, like the servers' `jute.maxbuffer`; set both to
    /// the same value. Larger requests fail with `TooLarge`. A request that exceeds only the servers' limit
    /// fails with `TooLarge` as well, after the servers closed two links.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.config.max_request = bytes;
        self
    }

    /// Sets the maximum total bytes of the paths of a session's ephemeral nodes, plus four for each node.
    /// Default 512 KiB, about 9,000 nodes. Tickets, claims, registrations and memberships count too. Creates
    /// beyond the limit fail with `TooManyEphemerals`.
    ///
    /// The end of a session is one transaction that lists all of these paths. Servers with default settings
    /// write such a transaction of more than 2 MiB but cannot read it again, so none of them can restart.
    /// Raise this limit only together with the servers' `jute.maxbuffer`.
    pub fn max_ephemeral_bytes(mut self, bytes: usize) -> Self {
        self.config.max_ephemeral_bytes = bytes;
        self
    }

    /// Sets the largest reply in bytes. Default 64 MiB, because a listing of a million children exceeds the
    /// limit for requests. If a reply is larger, its request fails with `TooLarge`; the reply is discarded,
    /// and nothing else is affected.
    pub fn max_reply(mut self, bytes: usize) -> Self {
        self.config.max_reply = bytes;
        self
    }

    /// Sets the maximum number of requests that may wait for a link or a reply. Default 10,000, at least 16
    /// because recipes send several requests together. Further requests fail with `Overloaded` once the retry
    /// policy gives up.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.config.max_waiting = requests;
        self
    }

    /// Sets the source of the time. Default [`BootClock`](crate::BootClock).
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = Arc::new(clock);
        self
    }

    /// Sets the way in which servers are reached. Default [`TcpTransport`](crate::TcpTransport).
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.config.transport = Arc::new(transport);
        self
    }

    /// Opens sessions with the crate `zookeeper-client` instead of Docent's own implementation.
    /// [`transport`](Self::transport) and [`max_reply`](Self::max_reply) then have no effect. Read about
    /// [its limits](crate::zookeeper_client) first.
    #[cfg(feature = "zookeeper-client")]
    pub fn zookeeper_client(mut self, options: ZookeeperClient) -> Self {
        self.config.zookeeper_client = Some(options);
        self
    }

    /// Gives the client an identity by name and password. If called more than once, the client has all of
    /// these identities.
    ///
    /// The password is sent over the wire unencrypted, so this needs TLS or
    /// [`allow_plaintext_auth`](Self::allow_plaintext_auth). Servers keep its unsalted SHA-1 in access
    /// control lists. They accept any name and password: a wrong password shows as `NoAuth` on the first
    /// protected node.
    ///
    /// With credentials, only the creator of a node may access it by default; see [`acl`](Self::acl).
    pub fn auth_digest(mut self, user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        self.config.digests.push((user.into(), password.into()));
        self
    }

    /// Like [`auth_digest`](Self::auth_digest), in any scheme that the servers support, with the credentials
    /// of that scheme.
    pub fn auth(mut self, scheme: impl Into<String>, credentials: impl Into<SecretSlice<u8>>) -> Self {
        self.config.credentials.push(Credentials::new(scheme.into(), credentials.into()));
        self
    }

    /// Proves an identity with SASL on every link, before anything else is sent. In access control lists the
    /// identity has the scheme `sasl`.
    ///
    /// If the servers refuse the user, the password or the ticket, or offer no SASL, the client is in the
    /// state [`AuthFailed`](ConnectionState::AuthFailed), and tries again every half minute. With SASL, only
    /// the creator of a node may access it by default; see [`acl`](Self::acl). Sessions of the crate
    /// `zookeeper-client` do not support it.
    ///
    /// The client keeps a password for its lifetime: after a change of the password, build a new client. It
    /// gets a Kerberos ticket for each link, so a renewed ticket needs nothing.
    pub fn sasl(mut self, sasl: Sasl) -> Self {
        self.config.sasl = Some(sasl);
        self
    }

    /// Allows credentials to be sent without TLS. Anyone with access to the network can then read them.
    pub fn allow_plaintext_auth(mut self) -> Self {
        self.config.allow_plaintext_auth = true;
        self
    }

    /// Sets the access control list for created nodes and for parents created on demand. Default:
    /// [`Acl::creator_all`] with credentials or a client certificate, otherwise [`Acl::open_unsafe`], which
    /// is logged once.
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Self {
        self.config.acl.set_default(acl.into());
        self
    }

    /// Chooses the access control lists of some nodes by their path in the namespace, without the number of a
    /// sequential node. If `choose` returns `None`, [`acl`](Self::acl) applies. The function is called for
    /// every node that is created, in the task that creates the node, and must not block. If it panics, the
    /// node is not created and the operation fails with `InvalidAcl`.
    ///
    /// If clients with different credentials share a lock or a service, the lists at its path must admit all
    /// of them. The function is not called for the session's own nodes, in folders named `_docent`, which
    /// only this client may access.
    pub fn acl_for(mut self, choose: impl Fn(&str) -> Option<Vec<Acl>> + Send + Sync + 'static) -> Self {
        self.config.acl.set_by_path(choose);
        self
    }

    /// Connects to the servers over TLS. The port must be their `secureClientPort`.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.config.tls = Some(tls);
        self
    }

    /// Starts the client and waits for its first session.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build); `AuthFailed` as soon as the servers refuse the credentials;
    /// `Timeout` if there is no session within the operation timeout. The text names each server with the
    /// reason.
    ///
    /// # Cancel safety
    /// This method is cancel safe. Nothing is left behind.
    pub async fn connect(self) -> Result<Client, Error> {
        let client = self.build()?;
        match tokio::time::timeout_at(client.deadline(), settled(client.state())).await {
            Ok(ConnectionState::Connected | ConnectionState::ReadOnly) => Ok(client),
            Ok(ConnectionState::AuthFailed) => {
                let reason = client.shared().ensemble.link_status.last_error();
                let error = Error::new(ErrorKind::AuthFailed, "connect");
                Err(reason.iter().fold(error, |error, reason| error.because(reason.chain())))
            }
            Ok(_) => Err(Error::new(client.shared().closed(), "connect")),
            Err(_) => {
                let (error, ensemble) =
                    (Error::new(ErrorKind::Timeout, "connect"), &client.shared().ensemble);
                let reasons = ensemble.link_status.no_link_to_each(&ensemble.servers.borrow());
                Err(reasons.into_iter().fold(error, Error::because))
            }
        }
    }

    /// Starts the client, which connects in the background.
    ///
    /// # Errors
    /// `InvalidInput` if a setting breaks a rule, or if the call is outside a tokio runtime.
    pub fn build(mut self) -> Result<Client, Error> {
        let ConnectString { servers, chroot } = ConnectString::parse(&self.connect_string)?;
        let namespace = Namespace::new(&chroot, &self.config.namespace)?;
        self.check()?;
        self.secure()?;
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|_| Error::invalid_input("connect", "a client must be built inside a tokio runtime"))?;
        let (session_runtime, runtime, threads) = match self.config.dedicated_thread {
            false => (runtime.clone(), runtime, Vec::new()),
            true => {
                let tasks = Thread::start("docent-tasks")?;
                let session = Thread::start("docent-session")?;
                (session.handle(), tasks.handle(), vec![session, tasks])
            }
        };
        let default_data = self.config.identity.clone().unwrap_or_else(|| local_address(&servers));
        let (cleanup, worker) = Cleanup::new();
        let named: Vec<_> = servers.iter().map(ToString::to_string).collect();
        let (shared, session) =
            Shared::new(self.config, namespace, default_data, servers, runtime.clone(), cleanup);
        // Event: A client was built and connects to the servers in the field `servers`.
        tracing::info!(target: "docent::client", client = %shared.label, servers = named.join(","), "connecting");
        check_requested(&shared);
        // Only this task renews leases. On a dedicated thread no other task is polled beside it.
        shared.tasks.spawn_on(supervise(Arc::clone(&shared), session), &session_runtime);
        shared.tasks.spawn_on(worker.run(Arc::clone(&shared)), &runtime);
        shared.tasks.close();
        threads.into_iter().for_each(|thread| thread.run(shared.tasks.clone()));
        let client = Client::from_shared(shared);
        if client.shared().config.track_ensemble {
            ensemble_tracker::start(&client);
        }
        Ok(client)
    }

    /// Determines the client's identities, checks that they are not sent in the clear, and determines the
    /// access control list of created nodes.
    fn secure(&mut self) -> Result<(), Error> {
        let config = &mut self.config;
        for (user, password) in config.digests.drain(..) {
            if user.is_empty() || user.contains(':') {
                let detail = format!("user {user:?} must have at least one character and no ':'");
                return Err(Error::invalid_input("connect", detail));
            }
            config.credentials.push(Credentials::digest(&user, &password));
        }
        #[cfg_attr(not(any(feature = "tls", feature = "zookeeper-client")), allow(unused_mut))]
        let (mut has_tls, mut has_identity) = (false, false);
        #[cfg(feature = "tls")]
        if let Some(tls) = &config.tls {
            (has_tls, has_identity) = (true, tls.has_identity());
        }
        #[cfg(feature = "zookeeper-client")]
        if let Some(options) = &config.zookeeper_client {
            if has_tls {
                let detail = "zookeeper-client sessions configure TLS separately: set TLS in their options";
                return Err(Error::invalid_input("connect", detail));
            }
            (has_tls, has_identity) = (options.wants_tls(), options.has_identity());
        }
        if !config.credentials.is_empty() && !has_tls && !config.allow_plaintext_auth {
            let detail = "credentials need TLS, or allow_plaintext_auth() to send them in the clear";
            return Err(Error::invalid_input("connect", detail));
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &config.tls {
            config.transport = Arc::new(tls.around(Arc::clone(&config.transport))?);
        }
        config.acl.resolve(has_identity || config.sasl.is_some() || !config.credentials.is_empty())
    }

    fn check(&self) -> Result<(), Error> {
        let config = &self.config;
        let invalid = |detail: String| Err(Error::invalid_input("connect", detail));
        if config.session_timeout.as_millis() == 0
            || i32::try_from(config.session_timeout.as_millis()).is_err()
        {
            return invalid(format!(
                "session timeout {:?} must be from 1 ms to 2^31 − 1 ms",
                config.session_timeout
            ));
        }
        if config.operation_timeout.is_zero() {
            return invalid("operation timeout 0 must be longer than zero".to_owned());
        }
        if !TICKS.contains(&config.server_tick.as_millis()) {
            return invalid(format!(
                "server tick {:?} must be from 1 ms to {} ms",
                config.server_tick,
                TICKS.end()
            ));
        }
        for (name, value, least) in [
            ("largest request", config.max_request, 1),
            ("largest reply", config.max_reply, 1),
            ("number of waiting requests", config.max_waiting, WAITING),
            ("number of bytes of ephemeral nodes", config.max_ephemeral_bytes, 1),
        ] {
            if value < least {
                return invalid(format!("{name} {value} must be at least {least}"));
            }
        }
        if let Some(rule) = config.label.as_deref().and_then(broken_rule) {
            return invalid(rule);
        }
        if let Some(rule) = config.sasl.as_ref().and_then(Sasl::broken_rule) {
            return invalid(rule.to_owned());
        }
        #[cfg(feature = "zookeeper-client")]
        if let Some(options) = &config.zookeeper_client {
            if config.sasl.is_some() {
                return invalid("sasl must not be set for sessions of zookeeper-client".to_owned());
            }
            if config.read_only {
                return invalid("read_only must not be set for sessions of zookeeper-client".to_owned());
            }
            if options.least_timeout.is_some_and(|least| least.is_zero()) {
                return invalid("minimum session timeout 0 must be longer than zero".to_owned());
            }
            if let Err(error) = options.connector() {
                return invalid(format!("invalid zookeeper-client settings: {error}"));
            }
        }
        Ok(())
    }
}

/// Waits for the first session, or for a state in which no session is expected soon.
async fn settled(mut state: StateWatcher) -> ConnectionState {
    use ConnectionState::{Connecting, Lost, Suspended};
    let settled = state.wait_for(|now| !matches!(now.state, Connecting | Suspended | Lost)).await;
    settled.map_or(ConnectionState::Closed, |settled| settled.state)
}

/// Returns the local address towards the first server, without sending anything, or the host's name.
fn local_address(servers: &[ServerAddress]) -> String {
    let towards = servers.first().and_then(|server| match server.host.as_str() {
        "localhost" => Some((IpAddr::V4(Ipv4Addr::LOCALHOST), server.port)),
        host => host.parse().ok().map(|address: IpAddr| (address, server.port)),
    });
    let address = towards.and_then(|(address, port)| {
        let any = match address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((address, port)).ok()?;
        Some(socket.local_addr().ok()?.ip().to_string())
    });
    address.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("connect_string", &without_credentials(&self.connect_string))
            .field("config", &self.config)
            .finish()
    }
}
