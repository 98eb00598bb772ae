use super::access::{Access, Kind};
use super::attempts::{Attempts, Verdict};
use super::cookie::{self, Cookie};
use super::headers::secure;
use super::hosts::{Hosts, WrongHost};
use super::local_path::{as_value, local_path};
use super::peer::Peer;
use super::routes::Area;
use super::secret::Secret;
use super::sessions::{Opened, Sessions};
use super::sign_in::{self, BASIC, BEARER, PAUSE, limited, once_more, unauthorized};
use super::visitor::{Visitor, check_origin, is_from_elsewhere, is_navigation};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// Maximum size of a form in bytes.
const LARGEST_FORM: usize = 64 << 10;

/// Maximum time for a form to arrive.
const SLOWEST_FORM: Duration = Duration::from_secs(10);

/// Everything that a request must pass before a page is drawn: the check of its host, and authentication.
/// Also serves the pages to sign in and out, and sets the headers of all replies.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    access: Access,
    hosts: Hosts,
    base: String,
    cookie: Cookie,
    /// Tokens for forms of the users of basic authentication, in their order. They have no session, because
    /// their browsers authenticate each request.
    forms: Vec<Secret>,
    sessions: Mutex<Sessions>,
    attempts: Mutex<Attempts>,
}

/// Who sent a request that may pass.
struct Admitted {
    visitor: Option<Visitor>,
    /// Cookie that the reply stores.
    cookie: Option<HeaderValue>,
    /// Closed when the session of a signed-in browser ends.
    alive: Option<watch::Receiver<()>>,
}

impl Gate {
    /// Creates a gate for a console that is mounted at `base`, which is empty or begins with `/`. `hosts` are
    /// accepted besides `localhost` and IP addresses.
    pub(crate) fn new(access: Access, hosts: Vec<String>, secure_cookies: bool, base: &str) -> Self {
        let users = match &access.0 {
            Kind::Basic(users) => users.len(),
            Kind::Open | Kind::Token(_) => 0,
        };
        Self(Arc::new(Inner {
            access,
            hosts: Hosts::new(hosts),
            base: base.to_owned(),
            cookie: Cookie::new(base, secure_cookies),
            forms: (0..users).map(|_| Secret::random()).collect(),
            sessions: Mutex::default(),
            attempts: Mutex::new(Attempts::new(Instant::now())),
        }))
    }

    /// Puts the gate in front of a router, whose paths are those below the base.
    pub(crate) fn layer(&self, router: Router) -> Router {
        let signing = Router::new()
            .route("/sign-in", get(sign_in::show).post(sign_in::submit))
            .route("/sign-out", post(sign_in::sign_out))
            .with_state(self.clone());
        router.merge(signing).layer(from_fn_with_state(self.clone(), pass))
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.0.access.0
    }

    pub(super) fn base(&self) -> &str {
        &self.0.base
    }

    pub(super) fn cookie(&self) -> &Cookie {
        &self.0.cookie
    }

    /// Returns a redirect to a path below the base.
    pub(super) fn see_other(&self, path: &str) -> Response {
        let target = HeaderValue::try_from(self.address(path));
        let target = target.unwrap_or(HeaderValue::from_static("/"));
        (StatusCode::SEE_OTHER, [(header::LOCATION, target)]).into_response()
    }

    /// Returns a path below the base as a browser needs it. A mounted router answers at its base, and not
    /// always with a slash behind it.
    pub(super) fn address(&self, path: &str) -> String {
        let base = &self.0.base;
        if path == "/" && !base.is_empty() { base.clone() } else { format!("{base}{path}") }
    }

    /// Judges a token, or user and password, unless the peer has sent too many wrong ones.
    pub(super) fn judge<T>(&self, peer: Peer, verify: impl FnOnce() -> Option<T>) -> Verdict<T> {
        let mut attempts = self.0.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let verdict = attempts.judge(peer, Instant::now(), verify);
        if let Verdict::Wrong = verdict {
            // Event: A browser or program has sent a wrong token, or a wrong user or password, to the
            // console. After ten in a minute, its address is not heard for the rest of that minute, and there
            // are no further events.
            // Action: If it repeats, find out who it is. Behind a proxy, `peer` is the address of the proxy.
            // Without client: no one is admitted, so nothing is asked of the servers.
            tracing::warn!(target: "docent::console", peer = %peer.describe("client"), "wrong token, user or password");
        }
        verdict
    }

    /// Creates a session in place of those with these ids, and returns its id.
    pub(super) fn replace_session<'a>(&self, old: impl Iterator<Item = &'a str>) -> String {
        self.end_sessions(old);
        self.sessions().create(Instant::now()).0
    }

    pub(super) fn end_sessions<'a>(&self, mut ids: impl Iterator<Item = &'a str>) {
        let mut sessions = self.sessions();
        ids.by_ref().for_each(|id| sessions.delete(id));
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides whether a request may pass.
    async fn admit(&self, area: Area, parts: &mut Parts) -> Result<Admitted, Response> {
        let checked = self.0.hosts.check(&parts.uri, &parts.headers);
        checked.map_err(|WrongHost(text)| (StatusCode::MISDIRECTED_REQUEST, text).into_response())?;
        name_host(parts);
        // Another site may link here, but neither embed nor fetch anything.
        if !(parts.method.is_safe() && is_navigation(&parts.headers)) {
            check_origin(&parts.headers).map_err(IntoResponse::into_response)?;
        }
        if let Area::Public { .. } = area {
            return Ok(Admitted { visitor: None, cookie: None, alive: None });
        }
        let peer = Peer::of(&parts.extensions);
        match self.kind() {
            // Browsers send no cookie with a link of another site, so this one may have a session.
            Kind::Open if area == Area::Pages && is_from_elsewhere(&parts.headers) => {
                let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
                Err(once_more(self, local_path(path)).into_response())
            }
            Kind::Open => Ok(self.admit_anyone(area, parts, peer)),
            Kind::Token(token) => self.admit_with_token(token, area, parts, peer).await,
            Kind::Basic(users) => self.admit_user(users, &parts.headers, peer).await,
        }
    }

    /// Admits a visitor of an open console. Only pages start a session, and only for clients that may be
    /// browsers.
    fn admit_anyone(&self, area: Area, parts: &Parts, peer: Peer) -> Admitted {
        let user = peer.describe("anonymous");
        let is_page = area == Area::Pages && parts.method == Method::GET;
        let is_program = credentials(&parts.headers, "Bearer").is_some();
        let (csrf, cookie) = match self.session_of(&parts.headers) {
            Some(opened) => (opened.csrf, None),
            None if is_page && !is_program => {
                let (id, opened) = self.sessions().create(Instant::now());
                (opened.csrf, Some(self.0.cookie.store(&parts.headers, &id)))
            }
            None => (String::new(), None),
        };
        Admitted { visitor: Some(Visitor { user, csrf, is_signed_in: false }), cookie, alive: None }
    }

    async fn admit_with_token(
        &self,
        token: &Secret,
        area: Area,
        parts: &Parts,
        peer: Peer,
    ) -> Result<Admitted, Response> {
        let user = peer.describe("token");
        if let Some(Opened { csrf, alive }) = self.session_of(&parts.headers) {
            let visitor = Some(Visitor { user, csrf, is_signed_in: true });
            return Ok(Admitted { visitor, cookie: None, alive: Some(alive) });
        }
        let sent = credentials(&parts.headers, "Bearer").filter(|_| area == Area::Programs);
        if let Some(sent) = sent {
            self.judge_slowly(peer, BEARER, || token.matches(sent).then_some(())).await?;
            let visitor = Some(Visitor { user, csrf: String::new(), is_signed_in: false });
            return Ok(Admitted { visitor, cookie: None, alive: None });
        }
        let is_page = area == Area::Pages && [Method::GET, Method::HEAD].contains(&parts.method);
        Err(match is_page {
            true => {
                let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
                self.see_other(&format!("/sign-in?to={}", as_value(path)))
            }
            false => unauthorized(BEARER, "sign in first, or send the token: Authorization: Bearer TOKEN\n"),
        })
    }

    async fn admit_user(
        &self,
        users: &[(String, Secret)],
        headers: &HeaderMap,
        peer: Peer,
    ) -> Result<Admitted, Response> {
        let sent = credentials(headers, "Basic").and_then(|text| STANDARD.decode(text).ok());
        let sent = sent.and_then(|bytes| String::from_utf8(bytes).ok());
        let Some((name, password)) = sent.as_deref().and_then(|text| text.split_once(':')) else {
            return Err(unauthorized(BASIC, "this console needs a user and password\n"));
        };
        let index = self.judge_slowly(peer, BASIC, || find_user(users, name, password)).await?;
        let (user, csrf) = (users[index].0.clone(), self.0.forms[index].expose().to_owned());
        let visitor = Visitor { user, csrf, is_signed_in: true };
        Ok(Admitted { visitor: Some(visitor), cookie: None, alive: None })
    }

    /// Judges credentials in a header. A reply to wrong ones is delayed.
    async fn judge_slowly<T>(
        &self,
        peer: Peer,
        scheme: &'static str,
        verify: impl FnOnce() -> Option<T>,
    ) -> Result<T, Response> {
        match self.judge(peer, verify) {
            Verdict::Right(right) => Ok(right),
            Verdict::Wrong => {
                sleep(PAUSE).await;
                Err(unauthorized(scheme, "wrong token, user or password\n"))
            }
            Verdict::Limited(wait) => Err(limited(wait)),
        }
    }

    fn session_of(&self, headers: &HeaderMap) -> Option<Opened> {
        let (mut sessions, now) = (self.sessions(), Instant::now());
        cookie::ids(headers).find_map(|id| sessions.find(id, now))
    }
}

/// Lets a request through the gate or refuses it. Both replies have the same headers.
async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let area = Area::of(request.uri().path());
    let reply = admit_and_run(&gate, area, request, next).await;
    let mut reply = reply.unwrap_or_else(|refusal| refusal);
    secure(reply.headers_mut(), area == Area::Public { is_asset: true });
    reply
}

async fn admit_and_run(gate: &Gate, area: Area, request: Request, next: Next) -> Result<Response, Response> {
    let (mut parts, mut body) = request.into_parts();
    let admitted = gate.admit(area, &mut parts).await?;
    if !parts.method.is_safe() {
        body = collect_form(body).await?;
    }
    if let Some(visitor) = admitted.visitor {
        parts.extensions.insert(visitor);
    }
    let mut reply = next.run(Request::from_parts(parts, body)).await;
    if let Some(cookie) = admitted.cookie {
        reply.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(match admitted.alive.filter(|_| area == Area::Events) {
        Some(alive) => until_signed_out(reply, alive),
        None => reply,
    })
}

/// Ends an event stream when the session of its browser ends.
fn until_signed_out(reply: Response, mut alive: watch::Receiver<()>) -> Response {
    reply.map(|body| {
        let ended = async move { while alive.changed().await.is_ok() {} };
        Body::from_stream(body.into_data_stream().take_until(Box::pin(ended)))
    })
}

/// Sets the header `Host` of a request of HTTP/2, which names the host in its target only.
fn name_host(parts: &mut Parts) {
    let host = parts.uri.authority().map(|authority| HeaderValue::from_str(authority.as_str()));
    if let Some(Ok(host)) = host {
        parts.headers.entry(header::HOST).or_insert(host);
    }
}

/// Reads a form before its handler runs, so that no handler waits for a slow client.
async fn collect_form(body: Body) -> Result<Body, Response> {
    let (status, text) = match timeout(SLOWEST_FORM, to_bytes(body, LARGEST_FORM)).await {
        Ok(Ok(form)) => return Ok(form.into()),
        Ok(Err(_)) => (StatusCode::PAYLOAD_TOO_LARGE, "a form may have at most 64 KiB\n"),
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the form did not arrive in 10 seconds\n"),
    };
    Err((status, text).into_response())
}

/// Returns the credentials in the header `Authorization` if it has this scheme.
fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (found, credentials) = text.split_once(' ')?;
    found.eq_ignore_ascii_case(scheme).then(|| credentials.trim())
}

/// Returns the place of the user with this name and password. The time does not depend on which of them is
/// wrong.
fn find_user(users: &[(String, Secret)], name: &str, password: &str) -> Option<usize> {
    let mut found = None;
    for (index, (user, secret)) in users.iter().enumerate() {
        let (is_user, is_password) = (Secret::new(&**user).matches(name), secret.matches(password));
        if is_user & is_password {
            found = Some(index);
        }
    }
    found
}
