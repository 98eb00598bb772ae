//! The SASL mechanism DIGEST-MD5 ([RFC 2831](https://www.rfc-editor.org/rfc/rfc2831)) as ZooKeeper's servers
//! and clients use it: protection `auth` only, one exchange for each connection.
//!
//! The client sends an empty token, the server answers with a [`challenge`], the client with the token of
//! [`respond`], and the server with a proof that it knows the password, too. All functions are pure: the
//! callers choose the nonces.

use md5::{Digest, Md5};
use std::fmt::Write;

/// Realm of ZooKeeper's servers.
pub const REALM: &str = "zk-sasl-md5";

/// Service that a client's response must name.
const URI: &str = "zookeeper/zk-sasl-md5";

/// Number of responses to one nonce, which is always the first.
const COUNT: &str = "00000001";

/// Maximum length of a token in bytes, according to the RFC.
const MAX_TOKEN: usize = 4096;

/// Reason why a token of the other side is not valid. It contains nothing of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidToken(&'static str);

/// Response of a client to a challenge.
#[derive(Clone, PartialEq, Eq)]
pub struct Response {
    /// Token to send.
    pub token: Vec<u8>,
    proof: String,
}

impl Response {
    /// Returns true if the server's last token proves that the server knows the password.
    pub fn is_confirmed_by(&self, token: &[u8]) -> bool {
        parse(token).is_ok_and(|fields| get(&fields, "rspauth").ok() == Some(&self.proof))
    }
}

// The token contains a hash of the password.
impl std::fmt::Debug for Response {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Response(..)")
    }
}

/// Returns a client's response to the challenge of a server. The `cnonce` must be unpredictable, and consist
/// of ASCII letters, digits and hyphens.
///
/// # Errors
/// [`InvalidToken`] if the challenge is malformed or demands what is not supported.
pub fn respond(user: &str, password: &str, challenge: &[u8], cnonce: &str) -> Result<Response, InvalidToken> {
    let fields = parse(challenge)?;
    if get(&fields, "algorithm")? != "md5-sess" {
        return Err(InvalidToken("the challenge demands an unsupported algorithm"));
    }
    let offers_auth = |(name, offer): &(String, String)| {
        name != "qop" || offer.split(',').any(|one| one.trim().eq_ignore_ascii_case("auth"))
    };
    if !fields.iter().all(offers_auth) {
        return Err(InvalidToken("the challenge demands an unsupported protection"));
    }
    let is_utf8 = fields.iter().any(|(name, value)| name == "charset" && value == "utf-8");
    let is_ascii = user.is_ascii() && password.is_ascii();
    if !is_utf8 && !is_ascii {
        return Err(InvalidToken("the server supports only ASCII in user and password"));
    }
    let nonce = get(&fields, "nonce")?;
    // With several realms a client may choose one. ZooKeeper's servers send one.
    let realm = fields.iter().find(|(name, _)| name == "realm").map_or("", |(_, realm)| realm);
    let exchange = Exchange { secret: secret(user, realm, password), nonce, cnonce };
    let charset = if is_utf8 { "charset=utf-8," } else { "" };
    let token = format!(
        "{charset}username={},realm={},nonce={},nc={COUNT},cnonce=\"{cnonce}\",digest-uri=\"{URI}\",response={},qop=auth",
        quoted(user),
        quoted(realm),
        quoted(nonce),
        exchange.hash(&format!("AUTHENTICATE:{URI}")),
    );
    Ok(Response { token: token.into_bytes(), proof: exchange.hash(&format!(":{URI}")) })
}

/// Returns a server's challenge. The `nonce` must be new for each exchange, and consist of ASCII letters,
/// digits and hyphens.
pub fn challenge(nonce: &str) -> Vec<u8> {
    format!("realm=\"{REALM}\",nonce=\"{nonce}\",charset=utf-8,algorithm=md5-sess").into_bytes()
}

/// Checks a client's response to the challenge with this `nonce`. Returns the user, and the server's token
/// that proves the server's knowledge of the password.
///
/// # Errors
/// [`InvalidToken`] if the response is malformed, the user is unknown, or the password differs.
pub fn verify<'a>(
    response: &[u8],
    nonce: &str,
    password_of: impl FnOnce(&str) -> Option<&'a str>,
) -> Result<(String, Vec<u8>), InvalidToken> {
    let fields = parse(response)?;
    let expected = [("nonce", nonce), ("realm", REALM), ("nc", COUNT), ("digest-uri", URI)];
    for (name, value) in expected {
        if get(&fields, name)? != value {
            return Err(InvalidToken("the response does not belong to the challenge"));
        }
    }
    if fields.iter().any(|(name, qop)| name == "qop" && qop != "auth") {
        return Err(InvalidToken("the response demands an unsupported protection"));
    }
    let (user, cnonce) = (get(&fields, "username")?, get(&fields, "cnonce")?);
    // The same answer for both reasons, so that a client cannot search for users.
    const REFUSED: InvalidToken = InvalidToken("wrong user or password");
    let password = password_of(user).ok_or(REFUSED)?;
    let exchange = Exchange { secret: secret(user, REALM, password), nonce, cnonce };
    if get(&fields, "response")? != exchange.hash(&format!("AUTHENTICATE:{URI}")) {
        return Err(REFUSED);
    }
    let token = format!("rspauth={}", exchange.hash(&format!(":{URI}")));
    Ok((user.to_owned(), token.into_bytes()))
}

/// What both sides of an exchange know.
struct Exchange<'a> {
    secret: [u8; 16],
    nonce: &'a str,
    cnonce: &'a str,
}

impl Exchange<'_> {
    /// Returns the hash that proves the knowledge of the password. The `purpose` differs by side.
    fn hash(&self, purpose: &str) -> String {
        let (nonce, cnonce) = (self.nonce, self.cnonce);
        let session = [&self.secret[..], format!(":{nonce}:{cnonce}").as_bytes()].concat();
        let (session, purpose) = (hex(&md5(&session)), hex(&md5(purpose.as_bytes())));
        hex(&md5(format!("{session}:{nonce}:{COUNT}:{cnonce}:auth:{purpose}").as_bytes()))
    }
}

fn secret(user: &str, realm: &str, password: &str) -> [u8; 16] {
    md5(&[hashed(user), hashed(realm), hashed(password)].join(&b':'))
}

/// Returns the bytes of a text as they are hashed: in ISO 8859-1 if it has all characters, else in UTF-8.
fn hashed(text: &str) -> Vec<u8> {
    let latin: Option<Vec<u8>> = text.chars().map(|char| u8::try_from(u32::from(char)).ok()).collect();
    latin.unwrap_or_else(|| text.as_bytes().to_vec())
}

fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the only value of a field.
fn get<'a>(fields: &'a [(String, String)], name: &str) -> Result<&'a str, InvalidToken> {
    let mut values = fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
    match (values.next(), values.next()) {
        (Some(value), None) => Ok(value),
        (None, _) => Err(InvalidToken("a required field is missing")),
        _ => Err(InvalidToken("a field appears more than once")),
    }
}

/// Parses a list of `name=value` and `name="value"`, with names in lower case.
fn parse(token: &[u8]) -> Result<Vec<(String, String)>, InvalidToken> {
    // Each field takes more memory than its bytes in the token.
    if token.len() > MAX_TOKEN {
        return Err(InvalidToken("the token is too long"));
    }
    let mut rest = std::str::from_utf8(token).map_err(|_| InvalidToken("the token is not UTF-8"))?;
    let mut fields = Vec::new();
    loop {
        rest = rest.trim_start_matches(|char: char| char == ',' || char.is_ascii_whitespace());
        if rest.is_empty() {
            return Ok(fields);
        }
        let (name, after) = rest.split_once('=').ok_or(InvalidToken("a field has no value"))?;
        let (value, after) = value(after.trim_start())?;
        fields.push((name.trim_end().to_ascii_lowercase(), value));
        rest = after.trim_start();
        if !rest.is_empty() && !rest.starts_with(',') {
            return Err(InvalidToken("fields must be separated by commas"));
        }
    }
}

/// Reads the value at the beginning of `text`. Returns it with the text behind it.
fn value(text: &str) -> Result<(String, &str), InvalidToken> {
    let Some(text) = text.strip_prefix('"') else {
        let end = text.find(|char: char| char == ',' || char.is_ascii_whitespace()).unwrap_or(text.len());
        return Ok((text[..end].to_owned(), &text[end..]));
    };
    let (mut value, mut is_escaped) = (String::new(), false);
    for (index, char) in text.char_indices() {
        match char {
            '"' if !is_escaped => return Ok((value, &text[index + 1..])),
            '\\' if !is_escaped => is_escaped = true,
            char => {
                value.push(char);
                is_escaped = false;
            }
        }
    }
    Err(InvalidToken("a quotation mark is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn verified(response: &[u8], password: &str) -> Result<(String, Vec<u8>), InvalidToken> {
        verify(response, "n1", |user| (user == "me").then_some(password))
    }

    /// The exchange of RFC 2831, section 4, with the service of ZooKeeper.
    #[test]
    fn hashes_are_those_of_the_standard() {
        let exchange = Exchange {
            secret: secret("chris", "elwood.innosoft.com", "secret"),
            nonce: "OA6MG9tEQGm2hh",
            cnonce: "OA6MHXh6VqTrRk",
        };
        let uri = "imap/elwood.innosoft.com";
        assert_eq!(exchange.hash(&format!("AUTHENTICATE:{uri}")), "d388dad90d4bbd760a152321f2143af7");
        assert_eq!(exchange.hash(&format!(":{uri}")), "ea40f60335c427b5527b84dbabcdfffd");
    }

    #[test]
    fn both_sides_prove_the_password_to_each_other() {
        let response = respond("me", "right", &challenge("n1"), "c1").unwrap();
        let (user, proof) = verified(&response.token, "right").unwrap();
        assert_eq!(user, "me");
        assert!(response.is_confirmed_by(&proof));
        assert!(!response.is_confirmed_by(b"rspauth=0") && !response.is_confirmed_by(b""));
        let refused = Err(InvalidToken("wrong user or password"));
        assert_eq!(verified(&response.token, "wrong"), refused);
        let unknown = respond("you", "right", &challenge("n1"), "c1").unwrap();
        assert_eq!(verified(&unknown.token, "right"), refused);
        let replayed = verify(&response.token, "n2", |_| Some("right"));
        assert_eq!(replayed, Err(InvalidToken("the response does not belong to the challenge")));
    }

    #[test]
    fn a_challenge_that_is_not_supported_is_refused() {
        for (token, rule) in [
            (&b"nonce=\"n\",charset=utf-8"[..], "a required field is missing"),
            (b"algorithm=md5-sess", "a required field is missing"),
            (b"algorithm=md5,nonce=n", "the challenge demands an unsupported algorithm"),
            (b"algorithm=md5-sess,nonce=n,nonce=m", "a field appears more than once"),
            (
                b"algorithm=md5-sess,nonce=n,qop=\"auth-int,auth-conf\"",
                "the challenge demands an unsupported protection",
            ),
            (b"nonce=\"n", "a quotation mark is missing"),
            (b"nonce=\"n\"x=1", "fields must be separated by commas"),
            (b"nonce", "a field has no value"),
            (b"\xff", "the token is not UTF-8"),
        ] {
            assert_eq!(respond("me", "secret", token, "c"), Err(InvalidToken(rule)), "{token:?}");
        }
        let response = respond("me", "secret", b"algorithm=md5-sess,nonce=n,qop=\"auth-int, auth\"", "c");
        assert!(!format!("{:?}", response.unwrap()).contains("response"), "no hash is printed");
    }

    #[test]
    fn a_token_that_is_too_long_is_refused() {
        let padded = |token: &[u8], length| [token, &b",".repeat(length - token.len())].concat();
        let challenge = challenge("n1");
        let response = respond("me", "right", &padded(&challenge, MAX_TOKEN), "c1").unwrap();
        verified(&padded(&response.token, MAX_TOKEN), "right").unwrap();
        let refused = Err(InvalidToken("the token is too long"));
        assert_eq!(respond("me", "right", &padded(&challenge, MAX_TOKEN + 1), "c1"), refused);
        let refused = verified(&padded(&response.token, MAX_TOKEN + 1), "right");
        assert_eq!(refused, Err(InvalidToken("the token is too long")));
    }

    proptest! {
        #[test]
        fn any_user_and_password_are_verified(user in ".+", password in ".*") {
            let response = respond(&user, &password, &challenge("n1"), "c1").unwrap();
            let verified = verify(&response.token, "n1", |_| Some(&password)).unwrap();
            prop_assert_eq!(verified.0, user);
        }

        #[test]
        fn any_token_is_parsed_or_refused(token in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (parse(&token), respond("me", "secret", &token, "c"), verified(&token, "secret"));
        }
    }
}
