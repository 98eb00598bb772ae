use axum::http::{HeaderMap, HeaderValue, header};

/// Name of the cookie with the id of a browser's session. The port is appended, because browsers do not
/// separate cookies by ports.
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
    /// `request` has the port of the console.
    pub(super) fn store(&self, request: &HeaderMap, id: &str) -> HeaderValue {
        self.header(request, id, "")
    }

    /// Returns the header that deletes the id.
    pub(super) fn delete(&self, request: &HeaderMap) -> HeaderValue {
        self.header(request, "", "; Max-Age=0")
    }

    fn header(&self, request: &HeaderMap, id: &str, more: &str) -> HeaderValue {
        let (path, secure) = (&self.path, if self.is_secure { "; Secure" } else { "" });
        let name = name(request);
        let text = format!("{name}={id}; HttpOnly; SameSite=Strict; Path={path}{secure}{more}");
        // Only a strange base has other characters: the cookie is then sent to the whole host.
        HeaderValue::try_from(text).unwrap_or_else(|_| {
            HeaderValue::try_from(format!("{name}={id}; HttpOnly; SameSite=Strict; Path=/{secure}{more}"))
                .expect("ids are letters, digits, - and _")
        })
    }
}

/// Returns the name of the cookie for the host and port that a request names.
fn name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()) {
        Some(port) => format!("{NAME}_{port}"),
        None => NAME.to_owned(),
    }
}

/// Returns the ids in a request. There can be several, because browsers send the cookies of all paths of a
/// host.
pub(super) fn ids(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let own = name(headers);
    let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(name, _)| *name == own).map(|(_, id)| id)
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
    fn consoles_on_two_ports_have_two_cookies() {
        let at = |host: &'static str| HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
        let names = ["zk", "zk:8484", "[::1]", "[::1]:8485", "zk:"].map(|host| name(&at(host)));
        let port = |port: &str| format!("docent_console{port}");
        assert_eq!(names, [port(""), port("_8484"), port(""), port("_8485"), port("")]);
        let mut request = at("zk:8485");
        request
            .append(header::COOKIE, HeaderValue::from_static("docent_console_8484=a; docent_console_8485=b"));
        assert_eq!(ids(&request).collect::<Vec<_>>(), ["b"]);
        let stored = Cookie::new("", false).store(&request, "id");
        assert!(stored.to_str().unwrap().starts_with("docent_console_8485=id;"));
    }

    #[test]
    fn a_base_that_no_header_can_have_does_not_panic() {
        assert!(
            Cookie::new("/a\nb", true)
                .store(&HeaderMap::new(), "id")
                .to_str()
                .unwrap()
                .ends_with("; Path=/; Secure")
        );
    }
}
