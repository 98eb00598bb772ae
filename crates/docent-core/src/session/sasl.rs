use bytes::Bytes;
use docent_proto::digest_md5;
use secrecy::{ExposeSecret, SecretString};
use std::fmt;
use uuid::Uuid;

/// Identity that a client proves to the servers with SASL, for
/// [`ClientBuilder::sasl`](crate::ClientBuilder::sasl).
#[derive(Clone)]
pub struct Sasl(Mechanism);

#[derive(Clone)]
enum Mechanism {
    DigestMd5 { user: String, password: SecretString },
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

    /// Returns the rule that this identity breaks, if it breaks one.
    pub(crate) fn broken_rule(&self) -> Option<&'static str> {
        match &self.0 {
            Mechanism::DigestMd5 { user, .. } if user.is_empty() => {
                Some("SASL user must have at least one character")
            }
            Mechanism::DigestMd5 { .. } => None,
        }
    }
}

/// Prints the mechanism and the user, never the password.
impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Mechanism::DigestMd5 { user, .. } => {
                f.debug_struct("DigestMd5").field("user", user).finish_non_exhaustive()
            }
        }
    }
}

/// One authentication on one link.
#[derive(Debug)]
pub(in crate::session) struct SaslExchange {
    /// Response that the server has not confirmed yet.
    response: Option<digest_md5::Response>,
}

/// Next step of a client after a token of the server.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::session) enum SaslStep {
    Send(Bytes),
    Done,
}

/// Reason why an authentication failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SaslError {
    #[error("the server refused the SASL authentication: wrong user or password")]
    Refused,
    #[error("the server does not offer SASL")]
    NotOffered,
    #[error("the server does not prove that it knows the password of the SASL user")]
    Unproven,
    #[error("cannot answer the server's SASL challenge: {0}")]
    Challenge(#[from] digest_md5::InvalidToken),
}

impl SaslExchange {
    /// Begins an authentication. Returns it with the first token to send.
    pub(in crate::session) fn begin() -> (Self, Bytes) {
        (Self { response: None }, Bytes::new())
    }

    /// Processes a token of the server, which is `None` if the server sent none.
    pub(in crate::session) fn step(
        &mut self,
        sasl: &Sasl,
        token: Option<&[u8]>,
    ) -> Result<SaslStep, SaslError> {
        let Mechanism::DigestMd5 { user, password } = &sasl.0;
        match (self.response.take(), token) {
            (None, None) => Err(SaslError::NotOffered),
            (None, Some(challenge)) => {
                let cnonce = Uuid::new_v4().to_string();
                let response = digest_md5::respond(user, password.expose_secret(), challenge, &cnonce)?;
                let token = Bytes::copy_from_slice(&response.token);
                self.response = Some(response);
                Ok(SaslStep::Send(token))
            }
            // Servers that accept clients whose authentication failed (`zookeeper.allowSaslFailedClients`)
            // send no token then.
            (Some(_), None) => Err(SaslError::Refused),
            (Some(response), Some(token)) if response.is_confirmed_by(token) => Ok(SaslStep::Done),
            (Some(_), Some(_)) => Err(SaslError::Unproven),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenged(sasl: &Sasl) -> (SaslExchange, Bytes) {
        let (mut exchange, first) = SaslExchange::begin();
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
        assert_eq!(SaslExchange::begin().0.step(&sasl, None), Err(SaslError::NotOffered));
        assert_eq!(challenged(&sasl).0.step(&sasl, None), Err(SaslError::Refused));
    }

    #[test]
    fn nothing_secret_is_printed() {
        let sasl = Sasl::digest_md5("me", "top-secret");
        let printed = format!("{sasl:?} {:?}", challenged(&sasl).0);
        assert!(printed.contains("me") && !printed.contains("secret"), "{printed}");
    }
}
