use axum::http::{HeaderMap, HeaderValue, header};

/// Name of the cookie with the id of a browser's session.
const NAME: &str = "docent_console";

/// Attributes of the cookie.
#[derive(Debug, Clone)]
pub(super) struct Cookie {
    /// Path below which browsers send it.
    path: String,
    is_secure: bool,
}

impl Cookie {
    pub(super) fn new(base: &str, is_secure: bool) -> Self {
        Self { path: if base.is_empty() { "/" } else { base }.to_owned(), is_secure }
    }

    /// Returns the header that stores an id. No script can read it, and no other site can make a browser send
    /// it.
    pub(super) fn store(&self, id: &str) -> HeaderValue {
        self.header(id, "")
    }

    /// Returns the header that deletes the id.
    pub(super) fn delete(&self) -> HeaderValue {
        self.header("", "; Max-Age=0")
    }

    fn header(&self, id: &str, more: &str) -> HeaderValue {
        let (path, secure) = (&self.path, if self.is_secure { "; Secure" } else { "" });
        let text = format!("{NAME}={id}; HttpOnly; SameSite=Strict; Path={path}{secure}{more}");
        // Only a strange base has other characters: the cookie is then sent to the whole host.
        HeaderValue::try_from(text).unwrap_or_else(|_| {
            HeaderValue::try_from(format!("{NAME}={id}; HttpOnly; SameSite=Strict; Path=/{secure}{more}"))
                .expect("ids are letters, digits, - and _")
        })
    }
}

/// Returns the ids in a request. There can be several, because browsers send the cookies of all paths and
/// ports of a host.
pub(super) fn ids(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == NAME).map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_all_cookies_with_the_name() {
        let mut headers = HeaderMap::new();
        for text in ["a=1; docent_console=first ;docent_console2=no", "docent_console=second; x", ""] {
            headers.append(header::COOKIE, text.parse().unwrap());
        }
        assert_eq!(ids(&headers).collect::<Vec<_>>(), ["first", "second"]);
    }

    #[test]
    fn a_base_that_no_header_can_have_does_not_panic() {
        assert!(Cookie::new("/a\nb", true).store("id").to_str().unwrap().ends_with("; Path=/; Secure"));
    }
}
