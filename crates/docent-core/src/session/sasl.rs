mod gssapi;
#[cfg(docent_gssapi)]
mod kerberos;

pub use gssapi::Gssapi;

use bytes::Bytes;
use docent_proto::digest_md5;
use secrecy::{ExposeSecret, SecretString};
use std::fmt;
use std::time::Duration;
use tokio::time::timeout;
use uuid::Uuid;

/// Identity that a client proves to the servers with SASL, for
/// [`ClientBuilder::sasl`](crate::ClientBuilder::sasl).
#[derive(Clone)]
pub struct Sasl(Mechanism);

#[derive(Clone)]
enum Mechanism {
    DigestMd5 {
        user: String,
        password: SecretString,
    },
    Gssapi {
        settings: Gssapi,
        #[cfg(docent_gssapi)]
        calls: kerberos::Calls,
    },
}

impl Sasl {
    /// Creates the identity of a user with a password that the servers know: mechanism DIGEST-MD5, realm
    /// `zk-sasl-md5`, as in ZooKeeper's Java client.
    ///
    /// The password itself is not sent, and the servers prove that they know it, too. A network without TLS
    /// still shows enough to guess a weak password, and to change requests after the authentication.
    pub fn digest_md5(user: impl Into<String>, password: impl Into<SecretString>) -> Self {
        Self(Mechanism::DigestMd5 { user: user.into(), password: password.into() })
    }

    /// Creates an identity that a Kerberos ticket proves: mechanism GSSAPI without a security layer, as in
    /// ZooKeeper's Java client. The servers prove their identity, too.
    ///
    /// It needs MIT Kerberos and a build with `RUSTFLAGS="--cfg docent_gssapi"`; without,
    /// [`build`](crate::ClientBuilder::build) fails with `InvalidInput`. No feature enables it, because
    /// `--all-features` must build without a system library.
    ///
    /// For each link, the client asks the system's Kerberos library for a ticket, on a separate thread.
    /// Without a ticket in time, for example because it has expired, the client continues with the next
    /// server, until the deadline of [`connect`](crate::ClientBuilder::connect). The error then names the
    /// reason. A connected client keeps its session if there is a new ticket before the session expires.
    pub fn gssapi(settings: Gssapi) -> Self {
        Self(Mechanism::Gssapi {
            settings,
            #[cfg(docent_gssapi)]
            calls: kerberos::Calls::default(),
        })
    }

    /// Returns the rule that this identity breaks, if it breaks one.
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        match &self.0 {
            Mechanism::DigestMd5 { user, .. } if user.is_empty() => {
                Some("SASL user must have at least one character")
            }
            Mechanism::DigestMd5 { .. } => None,
            Mechanism::Gssapi { settings, .. } => settings.broken_rule(),
        }
    }
}

/// Prints the identity, and no password.
impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Mechanism::DigestMd5 { user, .. } => {
                f.debug_struct("DigestMd5").field("user", user).finish_non_exhaustive()
            }
            Mechanism::Gssapi { settings, .. } => settings.fmt(f),
        }
    }
}

/// One authentication on one link.
#[derive(Debug)]
pub(in crate::session) enum SaslExchange {
    DigestMd5 {
        /// Response that the server has not confirmed yet.
        response: Option<digest_md5::Response>,
    },
    #[cfg(docent_gssapi)]
    Gssapi(kerberos::Exchange),
}

/// The beginning of DIGEST-MD5, which needs nothing.
impl Default for SaslExchange {
    fn default() -> Self {
        Self::DigestMd5 { response: None }
    }
}

/// Next step of a client after a token of the server.
#[derive(PartialEq, Eq)]
pub(in crate::session) enum SaslStep {
    Send(Bytes),
    Done,
}

// The token contains a hash of the password, or a ticket.
impl fmt::Debug for SaslStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Send(_) => "Send",
            Self::Done => "Done",
        })
    }
}

/// Reason why an authentication failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SaslError {
    #[error("the server refused the SASL authentication: wrong user or password")]
    Refused,
    #[error("the server does not offer SASL")]
    NotOffered,
    #[error("the server does not prove that it knows the password of the SASL user")]
    Unproven,
    #[error("cannot answer the server's SASL challenge: {0}")]
    Challenge(#[from] digest_md5::InvalidToken),
    #[error("no Kerberos ticket for {host} in time; check that the KDC in krb5.conf is reachable")]
    Late { host: String },
    #[cfg(docent_gssapi)]
    #[error(transparent)]
    Kerberos(#[from] kerberos::KerberosError),
    #[cfg(not(docent_gssapi))]
    #[error("{}", gssapi::NEEDS)]
    NotBuilt,
}

impl SaslError {
    /// Returns true if the server refuses this client, or offers it no SASL.
    pub(in crate::session) fn is_refusal(&self) -> bool {
        match self {
            Self::Refused | Self::NotOffered => true,
            #[cfg(docent_gssapi)]
            Self::Kerberos(error) => matches!(error, kerberos::KerberosError::Refused { .. }),
            _ => false,
        }
    }

    /// Returns true if all servers refuse this client, as for a wrong password. A server that offers no SASL,
    /// or whose keytab does not fit the ticket, speaks only for itself.
    pub(in crate::session) fn is_refusal_of_all(&self) -> bool {
        matches!(self, Self::Refused)
    }
}

/// An authentication that has begun, and its first token.
pub(in crate::session) type BegunSasl = (SaslExchange, Bytes);

impl SaslExchange {
    /// Begins an authentication with the server `host`, within `limit`. Returns it with the first token to
    /// send.
    ///
    /// # Errors
    /// If there is no Kerberos ticket for the server. Another attempt may succeed.
    ///
    /// # Cancel safety
    /// This function is cancel safe. A request for a ticket ends on its own thread, and its result is
    /// discarded.
    pub(in crate::session) async fn begin(
        sasl: &Sasl,
        host: &str,
        limit: Duration,
    ) -> Result<BegunSasl, SaslError> {
        let late = |_| Err(SaslError::Late { host: host.to_owned() });
        timeout(limit, Self::begin_whenever(sasl, host)).await.unwrap_or_else(late)
    }

    async fn begin_whenever(sasl: &Sasl, host: &str) -> Result<BegunSasl, SaslError> {
        match &sasl.0 {
            Mechanism::DigestMd5 { .. } => Ok(BegunSasl::default()),
            #[cfg(docent_gssapi)]
            Mechanism::Gssapi { settings, calls } => {
                let (exchange, token) = kerberos::begin(settings, calls, host).await?;
                Ok((Self::Gssapi(exchange), token))
            }
            #[cfg(not(docent_gssapi))]
            Mechanism::Gssapi { .. } => {
                let _ = host;
                Err(SaslError::NotBuilt)
            }
        }
    }

    /// Returns the error for a server that refuses the client.
    pub(in crate::session) fn refused(&self) -> SaslError {
        match self {
            Self::DigestMd5 { .. } => SaslError::Refused,
            #[cfg(docent_gssapi)]
            Self::Gssapi(exchange) => exchange.refused(),
        }
    }

    /// Processes a token of the server, which is `None` if the server sent none.
    pub(in crate::session) fn step(
        &mut self,
        sasl: &Sasl,
        token: Option<&[u8]>,
    ) -> Result<SaslStep, SaslError> {
        match (self, &sasl.0) {
            (Self::DigestMd5 { response }, Mechanism::DigestMd5 { user, password }) => {
                digest_md5_step(response, user, password, token)
            }
            (Self::DigestMd5 { .. }, Mechanism::Gssapi { .. }) => Err(SaslError::NotOffered),
            #[cfg(docent_gssapi)]
            (Self::Gssapi(exchange), _) => exchange.step(token),
        }
    }
}

fn digest_md5_step(
    pending: &mut Option<digest_md5::Response>,
    user: &str,
    password: &SecretString,
    token: Option<&[u8]>,
) -> Result<SaslStep, SaslError> {
    match (pending.take(), token) {
        (None, None) => Err(SaslError::NotOffered),
        (None, Some(challenge)) => {
            let cnonce = Uuid::new_v4().to_string();
            let response = digest_md5::respond(user, password.expose_secret(), challenge, &cnonce)?;
            let token = Bytes::copy_from_slice(&response.token);
            *pending = Some(response);
            Ok(SaslStep::Send(token))
        }
        // Servers that accept clients whose authentication failed (`zookeeper.allowSaslFailedClients`)
        // send no token then.
        (Some(_), None) => Err(SaslError::Refused),
        (Some(response), Some(token)) if response.is_confirmed_by(token) => Ok(SaslStep::Done),
        (Some(_), Some(_)) => Err(SaslError::Unproven),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenged(sasl: &Sasl) -> (SaslExchange, Bytes) {
        let (mut exchange, first) = BegunSasl::default();
        assert!(first.is_empty());
        match exchange.step(sasl, Some(&digest_md5::challenge("nonce"))).unwrap() {
            SaslStep::Send(token) => (exchange, token),
            SaslStep::Done => panic!("the server has proved nothing"),
        }
    }

    #[test]
    fn a_server_must_prove_the_password_as_well() {
        let sasl = Sasl::digest_md5("me", "right");
        let (mut exchange, response) = challenged(&sasl);
        let (_, proof) = digest_md5::verify(&response, "nonce", |_| Some("right")).unwrap();
        assert_eq!(exchange.step(&sasl, Some(&proof)), Ok(SaslStep::Done));
        let (mut exchange, _) = challenged(&sasl);
        assert_eq!(exchange.step(&sasl, Some(&proof)), Err(SaslError::Unproven), "the proof is not replayed");
    }

    #[test]
    fn a_server_without_a_token_offers_no_sasl_or_refuses_the_user() {
        let sasl = Sasl::digest_md5("me", "right");
        assert_eq!(SaslExchange::default().step(&sasl, None), Err(SaslError::NotOffered));
        assert_eq!(challenged(&sasl).0.step(&sasl, None), Err(SaslError::Refused));
    }

    #[test]
    fn nothing_secret_is_printed() {
        let sasl = Sasl::digest_md5("me", "top-secret");
        let printed = format!("{sasl:?} {:?}", challenged(&sasl).0);
        assert!(printed.contains("me") && !printed.contains("secret"), "{printed}");
    }
}
