use crate::net::{Bind, Entrance, Follow, Listener, Membership, TcpBind, follow};
use crate::time::{millis, timeouts_ms};
use crate::{Follower, Server, StartError};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Settings of a [`Follower`] to start.
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is started"]
pub struct FollowerBuilder<'a> {
    server: &'a Server,
    address: SocketAddr,
    allow_remote: bool,
    relay_interval: Duration,
    sync_limit: Duration,
    lag: Duration,
    session_timeouts: Option<(Duration, Duration)>,
}

impl<'a> FollowerBuilder<'a> {
    pub(crate) fn new(server: &'a Server) -> Self {
        let tick = server.config.tick;
        Self {
            server,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            allow_remote: false,
            relay_interval: tick / 2,
            sync_limit: tick.saturating_mul(5),
            lag: Duration::ZERO,
            session_timeouts: None,
        }
    }

    /// Sets how often the follower relays to the leader which sessions it has received something from;
    /// default half a tick. Use a whole tick to emulate an observer that is connected to an observer master.
    pub fn relay_interval(mut self, interval: Duration) -> Self {
        self.relay_interval = interval;
        self
    }

    /// Sets how long the follower continues to serve after it was cut off; default 5 ticks.
    pub fn sync_limit(mut self, limit: Duration) -> Self {
        self.sync_limit = limit;
        self
    }

    /// Sets how far the follower lags behind its leader; default no lag. See [`Follower::set_lag`].
    pub fn lag(mut self, lag: Duration) -> Self {
        self.lag = lag;
        self
    }

    /// Sets the minimum and maximum session timeout that the follower grants; default those that its leader
    /// grants when the follower is started.
    pub fn session_timeouts(mut self, min: Duration, max: Duration) -> Self {
        self.session_timeouts = Some((min, max));
        self
    }

    /// Sets the address to listen on; default 127.0.0.1 and any free port.
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Permits an address that other machines can reach. See
    /// [`Builder::allow_remote`](crate::Builder::allow_remote).
    pub fn allow_remote(mut self) -> Self {
        self.allow_remote = true;
        self
    }

    /// Starts the follower on TCP.
    ///
    /// # Errors
    /// [`StartError`] if the address is not permitted or not available.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O enabled.
    pub async fn start(self) -> Result<Follower, StartError> {
        self.start_on(TcpBind::default()).await
    }

    /// Starts the follower on a custom kind of listener. It runs on the current runtime, which may differ
    /// from the server's, such as that of another host in a simulation. In this case, set a
    /// [clock](crate::Builder::clock) for the server that all runtimes share.
    ///
    /// # Errors
    /// See [`start`](Self::start).
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    ///
    /// # Panics
    /// Outside a tokio runtime with time enabled.
    pub async fn start_on<B: Bind>(self, bind: B) -> Result<Follower, StartError> {
        if !self.allow_remote && !self.address.ip().is_loopback() {
            return Err(StartError::NotLoopback(self.address));
        }
        let failed = |source| StartError::Bind { address: self.address, source };
        let listener = bind.bind(self.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(self.launch(listener, address))
    }

    fn launch<L: Listener>(self, listener: L, address: SocketAddr) -> Follower {
        let (server, hub) = (self.server, &self.server.hub);
        let timeouts = self.session_timeouts.map(|(min, max)| timeouts_ms(min, max));
        let now = hub.clock.now_ms();
        let mut ensemble = hub.lock();
        let member = ensemble.add_follower(timeouts, millis(self.lag), now);
        ensemble.members.set_port(member, address.port());
        drop(ensemble);
        let (changed, stop) = (Arc::new(Notify::new()), server.stop.child_token());
        let entrance = Entrance {
            hub: Arc::clone(hub),
            member,
            links: server.links.clone(),
            handshake: server.config.limits.handshake,
        };
        let task = server.tasks.spawn(follow(Follow {
            listener,
            entrance,
            membership: Membership { hub: Arc::clone(hub), id: member },
            relay_ms: millis(self.relay_interval).max(1),
            changed: Arc::clone(&changed),
            stop: stop.clone(),
        }));
        Follower {
            hub: Arc::clone(hub),
            member,
            changed,
            stop,
            task,
            address,
            connect_string: address.to_string(),
            sync_limit: self.sync_limit,
        }
    }
}
