use docent_server::{Bind, Listener};
use std::io;
use std::net::SocketAddr;
use turmoil::net::{TcpListener, TcpStream};

/// Lets the embedded server listen in the simulated network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SimulatedBind;

/// A listener in the simulated network.
pub(crate) struct SimulatedListener(TcpListener);

impl Bind for SimulatedBind {
    type Listener = SimulatedListener;

    async fn bind(&self, address: SocketAddr) -> io::Result<SimulatedListener> {
        TcpListener::bind(address).await.map(SimulatedListener)
    }
}

impl Listener for SimulatedListener {
    type Io = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        self.0.accept().await
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
