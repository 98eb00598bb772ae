use super::acl::{Identity, SUPER};
use crate::config::SuperUser;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docent_proto::{Code, text_of};
use sha1::{Digest, Sha1};

/// Returns the identities that the credentials prove.
///
/// # Errors
/// [`Code::AUTH_FAILED`] if the scheme is not supported.
pub(crate) fn identities(
    scheme: &str,
    credentials: &[u8],
    super_user: Option<&SuperUser>,
) -> Result<Vec<Identity>, Code> {
    match scheme {
        "digest" => {
            let id = digest(credentials);
            let is_super = super_user.is_some_and(|user| user.0 == id);
            let more = is_super.then(|| Identity { scheme: SUPER.into(), id: String::new() });
            Ok(more.into_iter().chain([Identity { scheme: "digest".into(), id }]).collect())
        }
        // Every link has its address as an identity from the start.
        "ip" => Ok(Vec::new()),
        _ => Err(Code::AUTH_FAILED),
    }
}

/// Returns the user and the hash of user and password, in the format of access control lists:
/// `user:base64(sha1(user:password))`.
fn digest(credentials: &[u8]) -> String {
    let text = text_of(credentials);
    let user = text.split(':').next().unwrap_or_default();
    format!("{user}:{}", STANDARD.encode(Sha1::digest(&text)))
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
