//! Networks to a server: TCP on loopback, or in memory.

use crate::{MemoryListener, MemoryNet, Port};
use docent_core::{Client, ClientBuilder};
use docent_server::{Bind, Listener, Listening, TcpBind};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::net::TcpStream;
use tokio_util::either::Either;

/// A link of either network.
pub type NetStream = Either<TcpStream, DuplexStream>;

/// The network that the servers, proxies and clients of a test share.
#[derive(Debug, Clone, Default)]
pub enum Net {
    /// TCP on loopback, in real time.
    #[default]
    Loopback,
    /// In memory, for paused time.
    Memory(MemoryNet),
}

/// An address that stays reserved while nothing listens on it.
#[derive(Debug)]
pub(crate) enum Place {
    Loopback(Port),
    Memory(MemoryNet, SocketAddr),
}

/// A listener of either network.
#[derive(Debug)]
pub enum NetListener {
    /// TCP.
    Loopback(Listening),
    /// In memory.
    Memory(MemoryListener),
}

impl Net {
    /// Returns a builder for a client on this network that connects to `connect_string`.
    pub fn client_builder(&self, connect_string: impl AsRef<str>) -> ClientBuilder {
        match self {
            Self::Loopback => Client::builder(connect_string),
            Self::Memory(net) => net.client(connect_string),
        }
    }

    /// Listens on a free address.
    ///
    /// # Errors
    /// If no address is free.
    pub async fn listen(&self) -> io::Result<NetListener> {
        self.bind((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    pub(crate) async fn connect(&self, server: SocketAddr) -> io::Result<NetStream> {
        match self {
            Self::Loopback => {
                let stream = TcpStream::connect(server).await?;
                stream.set_nodelay(true)?;
                Ok(Either::Left(stream))
            }
            Self::Memory(net) => net.link(server).map(Either::Right),
        }
    }

    /// Returns the time that a proxy takes for each frame. In memory, this is the shortest time that tokio's
    /// timers support. Otherwise paused time would not advance while a test polls in a loop.
    pub(crate) fn latency(&self) -> Duration {
        match self {
            Self::Loopback => Duration::ZERO,
            Self::Memory(_) => Duration::from_millis(1),
        }
    }

    pub(crate) fn claim(&self) -> io::Result<Place> {
        match self {
            Self::Loopback => Port::claim().map(Place::Loopback),
            Self::Memory(net) => Ok(Place::Memory(net.clone(), net.claim()?)),
        }
    }
}

impl Place {
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Loopback(port) => port.address(),
            Self::Memory(_, address) => *address,
        }
    }

    pub(crate) async fn listen(&self) -> io::Result<NetListener> {
        match self {
            Self::Loopback(port) => port.listen().await.map(NetListener::Loopback),
            Self::Memory(net, address) => net.listen(*address).map(NetListener::Memory),
        }
    }
}

impl Bind for Net {
    type Listener = NetListener;

    async fn bind(&self, address: SocketAddr) -> io::Result<NetListener> {
        match self {
            Self::Loopback => TcpBind::default().bind(address).await.map(NetListener::Loopback),
            Self::Memory(net) => net.listen(address).map(NetListener::Memory),
        }
    }
}

impl Listener for NetListener {
    type Io = NetStream;

    async fn accept(&mut self) -> io::Result<(NetStream, SocketAddr)> {
        match self {
            Self::Loopback(listener) => {
                listener.accept().await.map(|(stream, from)| (Either::Left(stream), from))
            }
            Self::Memory(listener) => {
                listener.accept().await.map(|(stream, from)| (Either::Right(stream), from))
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Loopback(listener) => listener.local_addr(),
            Self::Memory(listener) => listener.local_addr(),
        }
    }
}

/// Makes a link end with a reset instead of an orderly close when it is dropped. In memory, the other end
/// cannot distinguish the two.
pub(crate) fn reset_on_drop(stream: &NetStream) {
    if let Either::Left(stream) = stream {
        let _ = stream.set_zero_linger();
    }
}
