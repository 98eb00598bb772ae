use super::listener::{Bind, Listener};
use std::io;
use std::net::{self, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1_024;

/// Listens by TCP, and keeps its port while it does not, so that the next listener has the same one.
///
/// # On drop
/// The port is kept no more.
#[derive(Debug, Default)]
pub struct TcpBind(Mutex<Option<TcpSocket>>);

impl TcpBind {
    /// Keeps a port before anything listens on it; where `address` has port 0, any free one. Connections to
    /// it are refused, and none that leaves this machine gets it. Others may listen on it if they ask for
    /// just this port: so may another process that shall serve there.
    ///
    /// # Errors
    /// When the port is not free.
    pub fn keep(address: SocketAddr) -> io::Result<Self> {
        let bind = Self::default();
        bind.address(address)?;
        Ok(bind)
    }

    /// The port that is kept, from the first time on.
    fn address(&self, wanted: SocketAddr) -> io::Result<SocketAddr> {
        let mut kept = self.kept();
        match &*kept {
            Some(socket) => socket.local_addr(),
            None => {
                let socket = bound(wanted)?;
                let address = socket.local_addr()?;
                // Elsewhere two sockets that are bound to one port exclude each other, although only one of
                // them listens.
                *kept = cfg!(target_os = "linux").then_some(socket);
                Ok(address)
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<TcpSocket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bind for TcpBind {
    type Listener = Listening;

    /// Listens on the kept port; `address` counts the first time only.
    async fn bind(&self, address: SocketAddr) -> io::Result<Listening> {
        let address = self.address(address)?;
        bound(address)?.listen(BACKLOG).map(Listening)
    }
}

/// A socket that does not listen. More of them may be bound to one port, so long as none listens.
fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Listener of TCP. When it is dropped nothing listens any more, and nothing is in the way of the next one.
#[derive(Debug)]
pub struct Listening(TcpListener);

impl Listener for Listening {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        Listener::accept(&mut self.0).await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Listener::local_addr(&self.0)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // A process that this one is just starting has a copy of the socket until its own program runs, and
        // that would go on listening. Copies are shut down with the original.
        if let Ok(copy) = self.0.as_fd().try_clone_to_owned() {
            let _ = net::TcpStream::from(copy).shutdown(Shutdown::Both);
        }
    }
}
