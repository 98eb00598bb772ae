use super::authority::{Authority, Issued};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

/// Accepts TLS from clients with a certificate and forwards the plain bytes. Stops when dropped.
pub(super) struct Terminator {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Terminator {
    pub(super) async fn start(
        identity: &Issued,
        authority: &Authority,
        version: &'static SupportedProtocolVersion,
        server: SocketAddr,
    ) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(config(identity, authority, version)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that is refused, or refuses, has disconnected.
                    let Ok(mut client) = acceptor.accept(client).await else { return };
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { address, task }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn config(
    identity: &Issued,
    authority: &Authority,
    version: &'static SupportedProtocolVersion,
) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let chain = CertificateDer::from_pem_slice(identity.chain().as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(identity.key().as_bytes()).unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![chain], key)
        .unwrap()
}
