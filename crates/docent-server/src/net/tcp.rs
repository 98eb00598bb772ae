use super::listener::{Bind, Listener};
use std::io;
use std::net::{self, Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1_024;

/// Creates TCP listeners, and keeps the port while none of them exists, so that the next listener has the
/// same port.
///
/// # On drop
/// The port is no longer kept.
#[derive(Debug, Default)]
pub struct TcpBind(Mutex<Option<TcpSocket>>);

impl TcpBind {
    /// Keeps a port before anything listens on it. If the port of `address` is 0, any free port is chosen.
    /// Connections to the port are refused, and the system does not use the port for outgoing connections.
    /// Another process may listen on the port if it asks for this port, for example a server that a test
    /// starts there.
    ///
    /// # Errors
    /// If the port is not free.
    pub fn keep(address: SocketAddr) -> io::Result<Self> {
        let bind = Self::default();
        bind.address(address)?;
        Ok(bind)
    }

    /// Returns the address with the port to keep, which the first call chooses.
    fn address(&self, wanted: SocketAddr) -> io::Result<SocketAddr> {
        let mut kept = self.kept();
        match &*kept {
            Some(socket) => socket.local_addr(),
            None => {
                let socket = bound(wanted)?;
                let address = socket.local_addr()?;
                // On other systems, two sockets that are bound to one port conflict, even if only one of them
                // listens.
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

    /// Listens on the kept port. `address` is only used by the first call.
    async fn bind(&self, address: SocketAddr) -> io::Result<Listening> {
        let address = self.address(address)?;
        bound(address)?.listen(BACKLOG).map(Listening)
    }
}

/// Creates a bound socket that does not listen. Several sockets may be bound to one port as long as none of
/// them listens.
fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A TCP listener. After it is dropped, nothing listens on its port, and the next listener can be created
/// immediately.
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
        // A child process that is being started has a copy of the socket until it executes its own program,
        // and the copy would continue to listen. Shutting the socket down also shuts down its copies.
        if let Ok(copy) = self.0.as_fd().try_clone_to_owned() {
            let _ = net::TcpStream::from(copy).shutdown(Shutdown::Both);
        }
    }
}
