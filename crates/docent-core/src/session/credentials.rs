use bytes::Bytes;
use docent_proto::Request;
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use std::fmt;

/// Identity that the client claims in one scheme, with its proof. Sent on every new link.
#[derive(Clone)]
pub(crate) struct Credentials {
    scheme: String,
    secret: SecretSlice<u8>,
}

impl Credentials {
    pub(crate) fn new(scheme: String, secret: SecretSlice<u8>) -> Self {
        Self { scheme, secret }
    }

    pub(crate) fn digest(user: &str, password: &SecretString) -> Self {
        let secret = [user.as_bytes(), b":", password.expose_secret().as_bytes()].concat();
        Self::new("digest".to_owned(), secret.into())
    }

    #[cfg(feature = "zookeeper-client")]
    pub(crate) fn add_to(&self, connector: zookeeper_client::Connector) -> zookeeper_client::Connector {
        connector.with_auth(&self.scheme, self.secret.expose_secret())
    }

    pub(crate) fn request(&self) -> Request {
        let credentials = Bytes::copy_from_slice(self.secret.expose_secret());
        Request::Auth { scheme: self.scheme.clone(), credentials }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
