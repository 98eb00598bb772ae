use super::secret::Secret;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::fmt;

/// Who sent a request.
#[derive(Clone)]
pub(crate) struct Visitor {
    /// Name for the log: a user, or `anonymous` or `token` with the address.
    pub(crate) user: String,
    /// Token that forms of this visitor must contain in the field `csrf`. Empty for clients without a
    /// session, which cannot send forms.
    pub(crate) csrf: String,
    /// True if there is something to sign out of.
    pub(crate) is_signed_in: bool,
}

/// Why a request that changes something is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("another site has sent this request; open the console itself and repeat the action there")]
    CrossSite,
    #[error(
        "the header Origin is not the host of this console; open the console under its own name, and if a proxy is \
         in between, make it pass on the header Host unchanged"
    )]
    ForeignOrigin,
    #[error(
        "the form is not of this session of the browser, or the session has ended; load the page again, check what it \
         shows and repeat the action"
    )]
    WrongToken,
}

impl Visitor {
    /// Checks that a form comes from a page that this console drew for this visitor.
    ///
    /// # Errors
    /// Why it does not.
    pub(crate) fn check(&self, headers: &HeaderMap, csrf_field: &str) -> Result<(), Refused> {
        check_origin(headers)?;
        match !self.csrf.is_empty() && Secret::new(&*self.csrf).matches(csrf_field) {
            true => Ok(()),
            false => Err(Refused::WrongToken),
        }
    }
}

/// Checks that a browser has sent a request from a page of the same origin, or because its user did. Programs
/// send neither of the headers.
pub(super) fn check_origin(headers: &HeaderMap) -> Result<(), Refused> {
    if is_from_elsewhere(headers) {
        return Err(Refused::CrossSite);
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_same = |origin: &str| host.is_some_and(|host| is_origin_of(origin, host));
    match origins.all(|origin| origin.to_str().is_ok_and(is_same)) {
        true => Ok(()),
        false => Err(Refused::ForeignOrigin),
    }
}

/// Returns true if a browser has sent a request because of a page of another origin.
pub(super) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    sites.any(|site| site != "same-origin" && site != "none")
}

/// Returns true if a browser opens a page in a window or tab, because its user follows a link or enters an
/// address.
pub(super) fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: &str, wanted: &str| headers.get(name).is_some_and(|value| value == wanted);
    is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document")
}

/// Returns true if an origin has this host and port. The scheme may differ: a proxy may have ended TLS.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let (Ok(origin), Ok(host)) = (origin.parse::<Uri>(), host.parse::<Authority>()) else { return false };
    let default = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return false,
    };
    origin.authority().is_some_and(|authority| {
        authority.host().eq_ignore_ascii_case(host.host())
            && authority.port_u16().unwrap_or(default) == host.port_u16().unwrap_or(default)
    })
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let visitor = parts.extensions.get::<Self>().cloned();
        visitor.ok_or_else(|| {
            (StatusCode::INTERNAL_SERVER_ERROR, "the route is outside of the gate\n").into_response()
        })
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (StatusCode::FORBIDDEN, format!("{self}\n")).into_response()
    }
}

impl fmt::Debug for Visitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitor").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_compared_with_the_host_and_port() {
        for (origin, host) in [
            ("http://localhost:8484", "localhost:8484"),
            ("https://zk.example", "zk.example"),
            ("https://zk.example", "ZK.example:443"),
            ("http://[::1]:8484", "[::1]:8484"),
        ] {
            assert!(is_origin_of(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("null", "localhost:8484"),
            ("", "localhost:8484"),
            ("http://localhost:8485", "localhost:8484"),
            ("http://localhost", "localhost:8484"),
            ("http://evil.example:8484", "localhost:8484"),
            ("http://localhost.evil.example:8484", "localhost:8484"),
            ("file:///localhost", "localhost"),
        ] {
            assert!(!is_origin_of(origin, host), "{origin} {host}");
        }
    }

    #[test]
    fn a_form_of_another_origin_is_refused_even_with_the_right_token() {
        let visitor = Visitor { user: "ann".to_owned(), csrf: "token".to_owned(), is_signed_in: true };
        let mut headers = HeaderMap::new();
        assert_eq!(visitor.check(&headers, "token"), Ok(()));
        headers.insert("host", "localhost:8484".parse().unwrap());
        headers.insert("origin", "http://evil.example".parse().unwrap());
        assert_eq!(visitor.check(&headers, "token"), Err(Refused::ForeignOrigin));
        headers.insert("sec-fetch-site", "cross-site".parse().unwrap());
        assert_eq!(visitor.check(&headers, "token"), Err(Refused::CrossSite));
    }

    #[test]
    fn a_visitor_without_session_cannot_send_forms() {
        let visitor = Visitor { user: "anonymous".to_owned(), csrf: String::new(), is_signed_in: false };
        assert_eq!(visitor.check(&HeaderMap::new(), ""), Err(Refused::WrongToken));
    }
}
