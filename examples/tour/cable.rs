use docent::transport::{Io, ServerAddress, TcpTransport, Transport};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;

const BUFFER: usize = 16 * 1024;

/// TCP over a cable that can be pulled, to show the effects.
///
/// While the cable is pulled, connections stay open but nothing arrives in either direction, and neither side
/// is notified. New connections are not refused, but are never established. In-flight bytes arrive when the
/// cable is plugged in again, like TCP retransmissions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cable {
    pulled: Arc<watch::Sender<bool>>,
}

impl Cable {
    pub(crate) fn pull(&self) {
        self.pulled.send_replace(true);
    }

    pub(crate) fn plug_in(&self) {
        self.pulled.send_replace(false);
    }

    /// Waits while the cable is pulled.
    async fn plugged_in(&self) {
        let mut pulled = self.pulled.subscribe();
        // The sender cannot have been dropped, because `self` owns it.
        let _ = pulled.wait_for(|pulled| !pulled).await;
    }

    /// Carries bytes one way, and then the end of the stream.
    async fn carry(
        self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut buffer = vec![0; BUFFER];
        loop {
            let length = from.read(&mut buffer).await?;
            self.plugged_in().await;
            if length == 0 {
                return to.shutdown().await;
            }
            to.write_all(&buffer[..length]).await?;
        }
    }

    /// Puts the cable between `tcp` and the returned stream.
    fn between(&self, tcp: Box<dyn Io>) -> Box<dyn Io> {
        let (near, far) = tokio::io::duplex(BUFFER);
        let (from_client, to_client) = tokio::io::split(far);
        let (from_server, to_server) = tokio::io::split(tcp);
        tokio::spawn(self.clone().carry(from_client, to_server));
        tokio::spawn(self.clone().carry(from_server, to_client));
        Box::new(near)
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

impl Transport for Cable {
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Answer<'a, Vec<SocketAddr>> {
        TcpTransport.resolve(server)
    }

    fn dial<'a>(&'a self, server: &'a ServerAddress, address: SocketAddr) -> Answer<'a, Box<dyn Io>> {
        Box::pin(async move {
            self.plugged_in().await;
            let tcp = TcpTransport.dial(server, address).await?;
            Ok(self.between(tcp))
        })
    }
}
