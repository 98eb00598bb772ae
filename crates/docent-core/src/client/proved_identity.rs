use super::Client;
use crate::error::{Error, ErrorKind};
use crate::operation::{Idempotency, unexpected};
use docent_proto::{ClientInfo, Request, Response};

/// Identity that a client has at the servers: one of those that access control lists are compared with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ProvedIdentity {
    /// Scheme by which it was proved: `ip`, `digest`, `x509`, `sasl`, `super`.
    pub scheme: String,
    /// The client's name in the terms of the scheme: for `digest` the user alone, without the hash of the
    /// password that stands in an [`Acl`](crate::Acl).
    pub name: String,
}

impl From<ClientInfo> for ProvedIdentity {
    fn from(ClientInfo { scheme, user }: ClientInfo) -> Self {
        Self { scheme, name: user }
    }
}

/// Asks the server of the link which identities the client has.
pub(super) async fn who_am_i(client: &Client) -> Result<Vec<ProvedIdentity>, Error> {
    const OPERATION: &str = "who_am_i";
    let (result, _) = client.call(OPERATION, "/", &|| Request::WhoAmI, Idempotency::Idempotent).await?;
    match result {
        Ok(Response::Clients(clients)) => Ok(clients.into_iter().map(ProvedIdentity::from).collect()),
        Ok(other) => Err(unexpected(OPERATION, &other)),
        Err(code) => Err(explained(Error::from_code(code, OPERATION))),
    }
}

/// The error, with the version of the servers that it takes.
fn explained(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unsupported => {
            error.because("it takes ZooKeeper 3.7 or newer, and a session of Docent's own")
        }
        _ => error,
    }
}
