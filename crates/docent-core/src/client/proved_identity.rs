use super::Client;
use crate::error::{Error, ErrorKind};
use crate::operation::{Idempotency, unexpected};
use docent_proto::{ClientInfo, Request, Response};

/// Identity of a client at the servers, which is compared with access control lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ProvedIdentity {
    /// Scheme by which the identity was proved: `ip`, `digest`, `x509`, `sasl`, `super`.
    pub scheme: String,
    /// The client's name in the scheme's terms. For `digest` this is the user alone, without the password
    /// hash that an [`Acl`](crate::Acl) contains.
    pub name: String,
}

impl From<ClientInfo> for ProvedIdentity {
    fn from(ClientInfo { scheme, user }: ClientInfo) -> Self {
        Self { scheme, name: user }
    }
}

/// Asks the connected server which identities the client has.
pub(super) async fn who_am_i(client: &Client) -> Result<Vec<ProvedIdentity>, Error> {
    const OPERATION: &str = "who_am_i";
    let (result, _) = client.call(OPERATION, "/", &|| Request::WhoAmI, Idempotency::Idempotent).await?;
    match result {
        Ok(Response::Clients(clients)) => Ok(clients.into_iter().map(ProvedIdentity::from).collect()),
        Ok(other) => Err(unexpected(OPERATION, &other)),
        Err(code) => Err(explained(Error::from_code(code, OPERATION))),
    }
}

/// Returns the error, with the required version of the servers.
fn explained(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Unsupported => {
            error.because("needs ZooKeeper 3.7 or newer, and a session that Docent runs itself")
        }
        _ => error,
    }
}
