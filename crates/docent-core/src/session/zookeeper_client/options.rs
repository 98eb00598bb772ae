#[cfg(feature = "zookeeper-client-tls")]
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;
use zookeeper_client as zk;

/// Settings of sessions that run on the crate `zookeeper-client`, for
/// [`ClientBuilder::zookeeper_client`](crate::ClientBuilder::zookeeper_client).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ZookeeperClient {
    /// Smallest session timeout that any server grants for the requested one: the smallest of their
    /// `maxSessionTimeout`, or the session timeout itself if all of them grant it.
    ///
    /// Required to hold guards, such as locks and leaderships. The crate does not report the timeout that a
    /// session is granted when it moves to another server. A lease derived from a larger timeout would be too
    /// long, so leases are derived from this value, or from the timeout granted first if that is smaller.
    /// Default: unknown, and acquiring a guard fails with `ShortLease`.
    pub least_timeout: Option<Duration>,
    /// Identity of the client, proved by SASL before anything else is sent. Default: none.
    #[cfg(docent_gssapi)]
    pub sasl: Option<Sasl>,
    /// TLS for every connection. Default: none.
    #[cfg(feature = "zookeeper-client-tls")]
    pub tls: Option<Tls>,
}

impl ZookeeperClient {
    /// Creates the default settings: no SASL, no TLS, no guards.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`least_timeout`](Self::least_timeout).
    #[must_use]
    pub fn least_timeout(mut self, timeout: Duration) -> Self {
        self.least_timeout = Some(timeout);
        self
    }

    /// Returns the shortest timeout that a session may be granted later, if `granted` was its first.
    pub(crate) fn least(&self, granted: Duration) -> Duration {
        self.least_timeout.map_or(granted, |least| least.min(granted))
    }

    /// Sets [`sasl`](Self::sasl).
    #[cfg(docent_gssapi)]
    #[must_use]
    pub fn sasl(mut self, sasl: Sasl) -> Self {
        self.sasl = Some(sasl);
        self
    }

    /// Sets [`tls`](Self::tls).
    #[cfg(feature = "zookeeper-client-tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Returns a connector of the crate with these settings. The error names the setting that the crate
    /// rejects.
    pub(crate) fn connector(&self) -> Result<zk::Connector, zk::Error> {
        let connector = zk::Client::connector();
        #[cfg(docent_gssapi)]
        let connector = match &self.sasl {
            Some(sasl) => connector.with_sasl(sasl.options()),
            None => connector,
        };
        #[cfg(feature = "zookeeper-client-tls")]
        let connector = match &self.tls {
            Some(tls) => connector.with_tls(tls.options()?),
            None => connector,
        };
        Ok(connector)
    }

    /// Returns true if these settings identify the client to the servers, in addition to the credentials of
    /// the builder.
    pub(crate) fn has_identity(&self) -> bool {
        #[cfg(docent_gssapi)]
        if self.sasl.is_some() {
            return true;
        }
        #[cfg(feature = "zookeeper-client-tls")]
        return self.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
        #[cfg(not(feature = "zookeeper-client-tls"))]
        return false;
    }

    pub(crate) fn wants_tls(&self) -> bool {
        #[cfg(feature = "zookeeper-client-tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "zookeeper-client-tls"))]
        return false;
    }
}

/// Method by which a client proves its identity to the servers.
#[cfg(docent_gssapi)]
#[derive(Clone)]
#[non_exhaustive]
pub enum Sasl {
    /// The Kerberos ticket in the cache of the user that runs the process.
    #[non_exhaustive]
    Gssapi {
        /// First part of the servers' principal.
        service: String,
        /// Second part of the servers' principal; `None` for the host in the connect string.
        host: Option<String>,
    },
}

#[cfg(docent_gssapi)]
impl Sasl {
    /// Creates the method for Kerberos. The servers' principal consists of `service`, usually `zookeeper`,
    /// and `host`; `None` stands for the host in the connect string.
    pub fn gssapi(service: impl Into<String>, host: Option<String>) -> Self {
        Self::Gssapi { service: service.into(), host }
    }

    fn options(&self) -> zk::SaslOptions {
        match self {
            Self::Gssapi { service, host } => {
                let options = zk::SaslOptions::gssapi().with_username(service.clone());
                match host {
                    Some(host) => options.with_hostname(host.clone()).into(),
                    None => options.into(),
                }
            }
        }
    }
}

#[cfg(docent_gssapi)]
impl std::fmt::Debug for Sasl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gssapi { service, host } => {
                f.debug_struct("Gssapi").field("service", service).field("host", host).finish()
            }
        }
    }
}

/// TLS certificates in PEM. The servers' host names are verified.
#[cfg(feature = "zookeeper-client-tls")]
#[derive(Clone)]
#[non_exhaustive]
pub struct Tls {
    /// Certificates, and optional revocation lists, against which the servers' certificates are verified.
    pub ca: String,
    /// Certificate chain and private key of this client, for servers that request them. The key is never
    /// printed, and overwritten when this value is dropped. For each session, the crate derives and keeps its
    /// own copy of the key.
    pub identity: Option<(String, SecretString)>,
}

#[cfg(feature = "zookeeper-client-tls")]
impl Tls {
    /// Trusts servers with certificates issued by one of the certificates in `ca`.
    pub fn new(ca: impl Into<String>) -> Self {
        Self { ca: ca.into(), identity: None }
    }

    /// Sets [`identity`](Self::identity).
    #[must_use]
    pub fn identity(mut self, certificates: impl Into<String>, key: impl Into<SecretString>) -> Self {
        self.identity = Some((certificates.into(), key.into()));
        self
    }

    fn options(&self) -> Result<zk::TlsOptions, zk::Error> {
        let options = zk::TlsOptions::new().with_pem_ca(&self.ca)?;
        match &self.identity {
            Some((certificates, key)) => options.with_pem_identity(certificates, key.expose_secret()),
            None => Ok(options),
        }
    }
}

#[cfg(feature = "zookeeper-client-tls")]
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "zookeeper-client-tls"))]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_printed() {
        let options = ZookeeperClient::new().tls(Tls::new("ca").identity("certificate", "key-secret"));
        let text = format!("{options:?}");
        assert!(text.contains("has_identity: true") && !text.contains("secret"), "{text}");
    }

    #[test]
    fn certificates_that_cannot_be_read_are_refused_before_connecting() {
        let error = ZookeeperClient::new().tls(Tls::new("no certificate")).connector().unwrap_err();
        assert!(error.to_string().contains("no valid tls trust anchor"), "{error}");
    }
}
