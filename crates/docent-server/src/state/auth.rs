use super::acl::Identity;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docent_proto::{Code, text_of};
use sha1::{Digest, Sha1};

/// The identity that credentials prove; `None` where that is nothing new.
///
/// # Errors
/// [`Code::AUTH_FAILED`] when the scheme is not one of ours.
pub(crate) fn identity(scheme: &str, credentials: &[u8]) -> Result<Option<Identity>, Code> {
    match scheme {
        "digest" => Ok(Some(Identity { scheme: "digest".into(), id: digest(credentials) })),
        // The address is an identity of every link from the start.
        "ip" => Ok(None),
        _ => Err(Code::AUTH_FAILED),
    }
}

/// The user, and the hash of user and password, as access control lists hold them:
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
