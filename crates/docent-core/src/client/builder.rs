use super::supervisor::supervise;
use super::thread::Thread;
use super::{Client, Config, ConnectionState, ParentKind, RollbackPolicy, StateWatcher};
use crate::cleanup::Cleanup;
use crate::error::{Error, ErrorKind};
use crate::node::Acl;
use crate::node::identity::broken_rule;
use crate::node::namespace::Namespace;
use crate::operation::Shared;
use crate::session::Credentials;
use crate::session::connect_string::{ConnectString, ServerAddress, without_credentials};
#[cfg(feature = "tls")]
use crate::session::link::tls::Tls;
use crate::session::link::transport::Transport;
#[cfg(feature = "zookeeper-client")]
use crate::session::zookeeper_client::ZookeeperClient;
use crate::time::{Clock, RetryPolicy};
use secrecy::{SecretSlice, SecretString};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Range of a server's tick in milliseconds: with a longer one the longest session timeout is below four
/// ticks, which is too short for a lease.
const TICKS: RangeInclusive<u128> = 1..=i32::MAX as u128 / 4;
/// Least number of requests that may wait: a recipe sends several together, such as the creates of a path's
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

    /// Puts all paths of this client below `path`, which is created on demand. It follows a chroot in the
    /// connect string.
    pub fn namespace(mut self, path: impl Into<String>) -> Self {
        self.config.namespace = path.into();
        self
    }

    /// Session timeout to ask for; the servers may grant another. Default 20 s, at least 1 ms, at most 2^31 −
    /// 1 ms.
    ///
    /// After this long without a sign of life the servers end the session. Locks are certain for two thirds
    /// of it, or less when it is short; see [`server_tick`](Self::server_tick).
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.config.session_timeout = timeout;
        self
    }

    /// Time limit of an operation, with waiting for a link, queueing and retries. Default 15 s. Waiting in
    /// the line of a lock is not limited by it.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.config.operation_timeout = timeout;
        self
    }

    /// Policy that decides when operations are tried again. Default [`RetryPolicy::exponential`].
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.config.retry = policy;
        self
    }

    /// The servers' `tickTime`. Default 2 s, as in the configuration that ZooKeeper ships; from 1 ms to a
    /// quarter of the longest session timeout.
    ///
    /// A server may end a session up to a tick early as its client sees it, so the lease of locks leaves a
    /// tick unused. Setting this lower than the servers' value makes a lock's lease unsafe.
    pub fn server_tick(mut self, tick: Duration) -> Self {
        self.config.server_tick = tick;
        self
    }

    /// Grants locks although the session timeout is below four ticks of the server. Their leases then rest on
    /// less margin than a follower that was cut off may need: a lock may be handed on before its holder
    /// knows.
    pub fn accept_short_lease(mut self) -> Self {
        self.config.accept_short_lease = true;
        self
    }

    /// Lets caches, and the views, memberships and configuration trees that rest on them, use persistent
    /// watches: one on the folder or tree tells of each change below it, so that a child that is created,
    /// changed or deleted costs one read. Default off: one-shot watches, which every server has, and after
    /// which a folder is listed again for each new child.
    ///
    /// Servers have them from 3.6 on. Where the server of a link has none, caches use one-shot watches on
    /// that link; it is asked again on links that are made ten minutes later. Such a server closes the link
    /// when it is asked. Sessions of the crate `zookeeper-client` do not use them.
    ///
    /// # Assumptions
    /// Below the folder of a `ChildrenCache` there is little besides its children: the servers tell of each
    /// change of what is below those, too, to no use. Newer servers do not tell of nodes that this client may
    /// not read: a child that was created so is shown as unreadable only when everything is read anew.
    pub fn persistent_watches(mut self) -> Self {
        self.config.persistent_watches = true;
        self
    }

    /// Runs the session on a thread of its own, so that code which blocks the runtime's threads cannot starve
    /// the heartbeat that keeps locks. The client's other tasks, such as caches and cleanups, run on a second
    /// thread. It costs these two, and a hop between threads for each request.
    ///
    /// Codecs, filters and validations that a view calls need no such thread: they run on one for blocking
    /// code in any case.
    pub fn dedicated_thread(mut self) -> Self {
        self.config.dedicated_thread = true;
        self
    }

    /// Calls codecs, filters and validations in the task of the view that they belong to, instead of on a
    /// thread for blocking code of the client's runtime. For simulations, where one thread must do
    /// everything. One that blocks then blocks the runtime, and may cost every lock of the client.
    pub fn inline_hooks(mut self) -> Self {
        self.config.inline_hooks = true;
        self
    }

    /// Policy for servers that turn out to have been restored from an older copy: by default the client does
    /// nothing more. They refuse a client that has seen newer transactions; after two session timeouts of
    /// that it is found out.
    pub fn on_rollback(mut self, policy: RollbackPolicy) -> Self {
        self.config.on_rollback = policy;
        self
    }

    /// Gives the session up when the servers refuse for good to delete a node that it left in a line:
    /// permission DELETE on the parent is missing. Such a node keeps others waiting for as long as its
    /// session lives.
    ///
    /// By default the refusal is logged as an error, and a caller that waits for the release gets
    /// [`NoAuth`](ErrorKind::NoAuth). With this setting it is the same, and besides that all other guards of
    /// the session are lost with [`SessionAbandoned`](crate::LostReason::SessionAbandoned); once they are
    /// dropped the session is ended at the servers, and the node goes with it. The client goes on in a new
    /// session.
    pub fn end_session_on_refused_delete(mut self) -> Self {
        self.config.end_session_on_refused_delete = true;
        self
    }

    /// Kind of node that missing parents are made as. Default containers.
    pub fn parents(mut self, kind: ParentKind) -> Self {
        self.config.parents = kind;
        self
    }

    /// Label in the client's [identity](crate::ClientIdentity) and in logs and metrics, which tells clients
    /// of one process apart: the name of the service or of the job. One line of at most 128 bytes. Default
    /// none: logs and metrics show the client's number in its process then, from 1 on.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.config.label = Some(label.into());
        self
    }

    /// Identity written into the nodes of locks, permits and claims, for people and tools that look at them.
    /// Default: the host, the process and the [label](Self::label), as
    /// [`ClientIdentity`](crate::ClientIdentity) says. Another text stands there as it is, without them.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.config.identity = Some(identity.into());
        self
    }

    /// Largest request in bytes. Default 1 MiB − 1, as the servers' `jute.maxbuffer`: set both to the same
    /// value. Larger requests fail with `TooLarge`, and so does a request that is above the servers' limit
    /// alone, after it has cost two links.
    pub fn max_request(mut self, bytes: usize) -> Self {
        self.config.max_request = bytes;
        self
    }

    /// Most bytes that the paths of a session's ephemeral nodes may have, with four more for each. Default
    /// 512 KiB: some 9,000 nodes. Tickets, claims, registrations and memberships count, too. More than that
    /// fails with `TooManyEphemerals`.
    ///
    /// The end of a session is one transaction that lists them all. Servers with default settings write one
    /// of more than 2 MiB and cannot read it again: none of them starts any more. Raise this only together
    /// with the servers' `jute.maxbuffer`.
    pub fn max_ephemeral_bytes(mut self, bytes: usize) -> Self {
        self.config.max_ephemeral_bytes = bytes;
        self
    }

    /// Largest reply in bytes. Default 64 MiB: a listing of a million children is above the limit for
    /// requests. A request fails with `TooLarge` when its reply is larger; the reply is thrown away, and all
    /// else goes on.
    pub fn max_reply(mut self, bytes: usize) -> Self {
        self.config.max_reply = bytes;
        self
    }

    /// Maximum number of requests that may wait for a link or a reply. Default 10,000, at least 16 because
    /// recipes send several requests together. More fail with `Overloaded` once the retry policy gives up.
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.config.max_waiting = requests;
        self
    }

    /// Source of the time. Default [`BootClock`](crate::BootClock).
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = Arc::new(clock);
        self
    }

    /// Way in which servers are reached. Default [`TcpTransport`](crate::TcpTransport).
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.config.transport = Arc::new(transport);
        self
    }

    /// Opens sessions with the crate `zookeeper-client` instead of Docent's own.
    /// [`transport`](Self::transport) and [`max_reply`](Self::max_reply) have no effect then. See [its
    /// limits](crate::zookeeper_client) first.
    #[cfg(feature = "zookeeper-client")]
    pub fn zookeeper_client(mut self, options: ZookeeperClient) -> Self {
        self.config.zookeeper_client = Some(options);
        self
    }

    /// Gives the client an identity, by name and password. May be called more than once: then the client has
    /// all of them.
    ///
    /// The password goes over the wire as it is, so that this needs TLS or
    /// [`allow_plaintext_auth`](Self::allow_plaintext_auth). Servers keep its unsalted SHA-1 in access
    /// control lists. They take any name and password: a wrong one shows as `NoAuth` on the first protected
    /// node.
    ///
    /// With credentials, nodes are created for their creator alone; see [`acl`](Self::acl).
    pub fn auth_digest(mut self, user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        self.config.digests.push((user.into(), password.into()));
        self
    }

    /// As [`auth_digest`](Self::auth_digest) in any scheme that the servers know, with the credentials of
    /// that scheme.
    pub fn auth(mut self, scheme: impl Into<String>, credentials: impl Into<SecretSlice<u8>>) -> Self {
        self.config.credentials.push(Credentials::new(scheme.into(), credentials.into()));
        self
    }

    /// Sends credentials without TLS: everybody with access to the network can read them.
    pub fn allow_plaintext_auth(mut self) -> Self {
        self.config.allow_plaintext_auth = true;
        self
    }

    /// The access control list that nodes and parents made on demand are created with. Default:
    /// [`Acl::creator_all`] with credentials or a client certificate, and [`Acl::open_unsafe`] without, which
    /// is said once in the log.
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> Self {
        self.config.acl.set_default(acl.into());
        self
    }

    /// Chooses the access control lists of some nodes by their path in the namespace, without the number of a
    /// sequential node; where it returns `None`, [`acl`](Self::acl) holds. It is called for every node that
    /// is created, where that is done, and must not block. Where it panics the node is not created, and the
    /// operation fails with `InvalidAcl`.
    ///
    /// Clients that share a lock or a service with other credentials need a list there that lets both in. It
    /// is not called for the session's own nodes, in folders called `_docent`: those are the client's alone.
    pub fn acl_for(mut self, choose: impl Fn(&str) -> Option<Vec<Acl>> + Send + Sync + 'static) -> Self {
        self.config.acl.set_by_path(choose);
        self
    }

    /// Talks to the servers over TLS. The port is then their `secureClientPort`.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.config.tls = Some(tls);
        self
    }

    /// Starts the client and waits for its first session.
    ///
    /// # Errors
    /// As [`build`](Self::build), `AuthFailed` as soon as the servers refuse the credentials, and `Timeout`
    /// when there is no session within the operation timeout; the source says why.
    ///
    /// # Cancel safety
    /// This method is cancel safe: nothing is left behind.
    pub async fn connect(self) -> Result<Client, Error> {
        let client = self.build()?;
        match tokio::time::timeout_at(client.deadline(), settled(client.state())).await {
            Ok(ConnectionState::Connected) => Ok(client),
            Ok(ConnectionState::AuthFailed) => Err(Error::new(ErrorKind::AuthFailed, "connect")),
            Ok(_) => Err(Error::new(client.shared().closed(), "connect")),
            Err(_) => {
                let error = Error::new(ErrorKind::Timeout, "connect");
                Err(match client.shared().ensemble.last_error.why() {
                    Some(source) => error.caused_by(source),
                    None => error,
                })
            }
        }
    }

    /// Starts the client, which connects in the background.
    ///
    /// # Errors
    /// `InvalidInput` for settings that break a rule, and outside a tokio runtime.
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
        tracing::info!(client = %shared.label, servers = named.join(","), "connecting");
        // Nothing but this renews leases, and no other task is polled beside it on a thread of its own.
        shared.tasks.spawn_on(supervise(Arc::clone(&shared), session), &session_runtime);
        shared.tasks.spawn_on(worker.run(Arc::clone(&shared)), &runtime);
        shared.tasks.close();
        threads.into_iter().for_each(|thread| thread.run(shared.tasks.clone()));
        Ok(Client::from_shared(shared))
    }

    /// Settles the client's identities, their secrecy on the wire, and the access control list of nodes that
    /// it creates.
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
                let detail = "sessions of zookeeper-client have TLS of their own: set it in their options";
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
        config.acl.resolve(has_identity || !config.credentials.is_empty())
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
            return invalid("operation timeout 0 must be longer than nothing".to_owned());
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
        #[cfg(feature = "zookeeper-client")]
        if let Some(options) = &config.zookeeper_client {
            if options.least_timeout.is_some_and(|least| least.is_zero()) {
                return invalid("least session timeout 0 must be longer than nothing".to_owned());
            }
            if let Err(error) = options.connector() {
                return invalid(format!("settings of zookeeper-client: {error}"));
            }
        }
        Ok(())
    }
}

/// Waits for the first session, or for a state in which there will be none soon.
async fn settled(mut state: StateWatcher) -> ConnectionState {
    use ConnectionState::{Connecting, Lost, Suspended};
    let settled = state.wait_for(|now| !matches!(now.state, Connecting | Suspended | Lost)).await;
    settled.map_or(ConnectionState::Closed, |settled| settled.state)
}

/// The local address towards the first server, without sending anything, or the host's name.
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
