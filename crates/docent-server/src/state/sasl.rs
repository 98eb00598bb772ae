use crate::config::SaslUsers;
use bytes::Bytes;
use docent_proto::{Code, digest_md5};

/// Authentication of a link with SASL.
#[derive(Clone, Default)]
pub(crate) enum Sasl {
    #[default]
    NotBegun,
    /// The client was sent the challenge with this nonce.
    Challenged { nonce: String },
    /// The exchange has ended; there is none after it on the same link.
    Over,
}

/// Answer to a token of a client.
pub(crate) enum Answer {
    Challenge(Bytes),
    /// The client is this user. The token proves that the server knows the password.
    Accepted {
        user: String,
        token: Bytes,
    },
}

impl Sasl {
    /// Answers a token of the client.
    ///
    /// # Errors
    /// [`Code::AUTH_FAILED`] if the token is out of place, or does not prove that the client is a user.
    pub(crate) fn step(
        &mut self,
        users: &SaslUsers,
        token: &[u8],
        nonce: impl FnOnce() -> String,
    ) -> Result<Answer, Code> {
        match std::mem::replace(self, Self::Over) {
            Self::NotBegun if token.is_empty() => {
                let nonce = nonce();
                let challenge = digest_md5::challenge(&nonce).into();
                *self = Self::Challenged { nonce };
                Ok(Answer::Challenge(challenge))
            }
            Self::Challenged { nonce } => {
                let verified = digest_md5::verify(token, &nonce, |user| users.password(user));
                let (user, token) = verified.map_err(|_| Code::AUTH_FAILED)?;
                Ok(Answer::Accepted { user, token: token.into() })
            }
            Self::NotBegun | Self::Over => Err(Code::AUTH_FAILED),
        }
    }
}
