use super::State;
use super::acl::Identity;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docent_proto::{Code, Response};
use sha1::{Digest, Sha1};

impl State {
    /// Makes the link's client one more identity, if the scheme is one of ours.
    pub(super) fn authenticate(
        &mut self,
        session: i64,
        scheme: &str,
        credentials: &[u8],
    ) -> Result<Response, Code> {
        let identity = match scheme {
            "digest" => Identity { scheme: "digest".into(), id: digest(credentials) },
            // The address is an identity of every link from the start.
            "ip" => return Ok(Response::Empty),
            _ => return Err(Code::AUTH_FAILED),
        };
        let session = self.sessions.get_mut(session).ok_or(Code::AUTH_FAILED)?;
        if !session.identities.contains(&identity) {
            if session.identities.len() >= MOST_IDENTITIES {
                return Err(Code::AUTH_FAILED);
            }
            session.identities.push(identity);
        }
        Ok(Response::Empty)
    }
}

/// More than any client has a use for, few enough to keep.
const MOST_IDENTITIES: usize = 1_000;

/// The user, and the hash of user and password, as access control lists hold them:
/// `user:base64(sha1(user:password))`.
fn digest(credentials: &[u8]) -> String {
    let user = credentials.split(|byte| *byte == b':').next().unwrap_or_default();
    format!("{}:{}", String::from_utf8_lossy(user), STANDARD.encode(Sha1::digest(credentials)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_one_that_zookeeper_computes() {
        assert_eq!(digest(b"u:p"), "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=");
        assert_eq!(digest(b"super:test"), "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
        assert!(digest(b"no colon").starts_with("no colon:"));
    }
}
