//! TLS around any transport.

use crate::error::Error;
use crate::session::connect_string::ServerAddress;
use crate::session::link::transport::{Dialled, Io, Transport};
use futures_util::FutureExt;
use secrecy::{ExposeSecret, SecretSlice};
use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Settings for TLS 1.2 or 1.3, with which client and servers authenticate each other.
///
/// A server is trusted if its certificate chains up to one of the certificates given here. The certificate
/// must also be valid for the host in the connect string: a DNS name, or an IP address that the certificate
/// lists. Neither check can be disabled, and no other certificate is trusted, not even the system's.
///
/// PEM is read when the client is built, and errors in it are reported there. Files are read again before
/// each connection, so replacing a certificate before it expires needs no restart. If new files cannot be
/// used, for example halfway through their replacement, the content loaded last stays in use and the client
/// logs a warning.
///
/// ```no_run
/// # async fn example() -> Result<(), docent_core::Error> {
/// use docent_core::{Client, Tls};
///
/// let tls = Tls::new().ca_pem_file("ca.pem").client_identity_pem_files("client.pem", "client.key");
/// let client = Client::builder("zk1.example.org:2281").tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Tls {
    authorities: Vec<Pem>,
    identity: Option<(Pem, Pem)>,
    server_name: Option<String>,
}

#[derive(Clone)]
enum Pem {
    Bytes(SecretSlice<u8>),
    File(PathBuf),
}

impl Tls {
    /// Creates settings that trust no server yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts servers whose certificate was issued by one of these certificates, in PEM. May be called again
    /// to add more.
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.authorities.push(Pem::new(pem.into()));
        self
    }

    /// Like [`ca_pem`](Self::ca_pem), from a file.
    pub fn ca_pem_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities.push(Pem::File(path.into()));
        self
    }

    /// Presents a certificate to the servers (with the chain up to an authority that they trust) and proves
    /// ownership with its key. All are in PEM; the key is PKCS#8, PKCS#1 or SEC1.
    ///
    /// Servers with `ssl.clientAuth=need`, their default, require a client certificate. They also
    /// authenticate the client by the certificate, in the scheme `x509`.
    pub fn client_identity_pem(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((Pem::new(chain.into()), Pem::new(key.into())));
        self
    }

    /// Like [`client_identity_pem`](Self::client_identity_pem), from files.
    pub fn client_identity_pem_files(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.identity = Some((Pem::File(chain.into()), Pem::File(key.into())));
        self
    }

    /// Sets the name that every server's certificate must be valid for, instead of the host in the connect
    /// string.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    pub(crate) fn has_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// Wraps `inner` in TLS.
    ///
    /// # Errors
    /// `InvalidInput` if the content is not the expected PEM.
    pub(crate) fn around(&self, inner: Arc<dyn Transport>) -> Result<TlsTransport, Error> {
        let name = self.server_name.as_deref().map(|name| server_name(name).map_err(invalid)).transpose()?;
        let connector = Mutex::new(self.connector()?);
        Ok(TlsTransport { inner, tls: self.clone(), connector, server_name: name })
    }

    /// Reads the files and builds the connector.
    fn connector(&self) -> Result<TlsConnector, Error> {
        let mut config = self.config()?;
        // A ZooKeeper session survives its links without TLS resumption, and a resumed TLS session would skip
        // the check of the certificate.
        config.resumption = tokio_rustls::rustls::client::Resumption::disabled();
        Ok(TlsConnector::from(Arc::new(config)))
    }

    fn has_files(&self) -> bool {
        let identity = self.identity.iter().flat_map(|(chain, key)| [chain, key]);
        self.authorities.iter().chain(identity).any(|pem| matches!(pem, Pem::File(_)))
    }

    fn config(&self) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(invalid)?
            .with_root_certificates(self.roots()?);
        let Some((chain, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let certificates = chain.certificates("client identity")?;
        let key = PrivateKeyDer::from_pem_slice(key.read()?.expose_secret())
            .map_err(|error| invalid(format!("key of the client identity {key}: {error}")))?;
        builder
            .with_client_auth_cert(certificates, key)
            .map_err(|error| invalid(format!("client identity {chain}: {error}")))
    }

    fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        for pem in &self.authorities {
            for certificate in pem.certificates("certificate authority")? {
                roots
                    .add(certificate)
                    .map_err(|error| invalid(format!("certificate authority {pem}: {error}")))?;
            }
        }
        if roots.is_empty() {
            return Err(invalid("at least one certificate authority must be trusted"));
        }
        Ok(roots)
    }
}

impl Pem {
    fn new(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }

    fn read(&self) -> Result<SecretSlice<u8>, Error> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.clone()),
            Self::File(path) => fs::read(path)
                .map(Into::into)
                .map_err(|error| invalid(format!("could not read {self}: {error}"))),
        }
    }

    fn certificates(&self, what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
        let pem = self.read()?;
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.expose_secret())
            .collect::<Result<_, _>>()
            .map_err(|error| invalid(format!("{what} {self}: {error}")))?;
        if certificates.is_empty() {
            return Err(invalid(format!("{what} {self} has no certificate in PEM")));
        }
        Ok(certificates)
    }
}

impl fmt::Display for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "({} bytes)", bytes.expose_secret().len()),
            Self::File(path) => write!(f, "{path:?}"),
        }
    }
}

// Bytes may hold a key, so they are not printed.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pem({self})")
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("authorities", &self.authorities)
            .field("identity", &self.identity)
            .field("server_name", &self.server_name)
            .finish()
    }
}

/// A transport that wraps another transport in TLS.
pub(crate) struct TlsTransport {
    inner: Arc<dyn Transport>,
    tls: Tls,
    /// Connector with the content of the files that was loaded last.
    connector: Mutex<TlsConnector>,
    server_name: Option<ServerName<'static>>,
}

impl TlsTransport {
    /// Returns the connector for the next link, with the current content of the files if it is usable.
    async fn connector(&self) -> TlsConnector {
        if self.tls.has_files() {
            let tls = self.tls.clone();
            match tokio::task::spawn_blocking(move || tls.connector()).await {
                Ok(Ok(connector)) => *self.last_read() = connector,
                Ok(Err(error)) => {
                    // Event: The TLS files could not be loaded or are not valid. The client keeps using the
                    // certificates and key that it loaded last.
                    // Action: Repair the files that the field `error` names, before the certificates in use
                    // expire.
                    // Without client: one TLS setting may serve many clients.
                    tracing::warn!(target: "docent::session", %error, "cannot load the TLS files; keeping the certificates and key loaded last");
                }
                // The runtime is shutting down.
                Err(_) => {}
            }
        }
        self.last_read().clone()
    }

    fn last_read(&self) -> MutexGuard<'_, TlsConnector> {
        self.connector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for TlsTransport {
    fn resolve<'a>(&'a self, server: &'a ServerAddress) -> Dialled<'a, Vec<SocketAddr>> {
        self.inner.resolve(server)
    }

    fn dial<'a>(&'a self, server: &'a ServerAddress, address: SocketAddr) -> Dialled<'a, Box<dyn Io>> {
        async move {
            let name = match &self.server_name {
                Some(name) => name.clone(),
                None => server_name(&server.host).map_err(io::Error::other)?,
            };
            let connector = self.connector().await;
            let stream = self.inner.dial(server, address).await?;
            let stream = connector.connect(name, stream).await?;
            Ok(Box::new(stream) as Box<dyn Io>)
        }
        .boxed()
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsTransport").field("inner", &self.inner).finish_non_exhaustive()
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(name.to_owned())
        .map_err(|_| format!("server name {name:?} must be a DNS name or an IP address"))
}

fn invalid(detail: impl fmt::Display) -> Error {
    Error::invalid_input("connect", format!("TLS: {detail}"))
}
