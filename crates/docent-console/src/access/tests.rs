//! The rules of the gate, in front of a small router.

use super::{Access, Gate, Visitor};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{ConnectInfo, Form};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

const TOKEN: &str = "0123456789abcdef";

async fn who(visitor: Visitor) -> String {
    format!("{} {}", visitor.user, visitor.csrf)
}

async fn act(visitor: Visitor, headers: HeaderMap, Form(form): Form<HashMap<String, String>>) -> Response {
    match visitor.check(&headers, form.get("csrf").map_or("", String::as_str)) {
        Ok(()) => "done".into_response(),
        Err(refused) => refused.into_response(),
    }
}

async fn endless() -> Response {
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from("event: patch\n\n"))]);
    Body::from_stream(first.chain(futures_util::stream::pending())).into_response()
}

fn console(access: Access) -> Router {
    console_at(access, "", false)
}

fn console_at(access: Access, base: &str, secure: bool) -> Router {
    let router = Router::new()
        .route("/", get(who))
        .route("/locks", get(who))
        .route("/at/{*path}", get(who))
        .route("/metrics", get(who))
        .route("/api/v1/recipes", get(who))
        .route("/events", get(endless))
        .route("/healthz", get(async || "alive"))
        .route("/readyz", get(async || "ready"))
        .route("/assets/console.css", get(async || "css"))
        .route("/act", post(act));
    Gate::new(access, vec!["zk.example".to_owned()], secure, base).layer(router)
}

fn token() -> Access {
    Access::token(TOKEN).unwrap()
}

fn users() -> Access {
    Access::basic([("ann", "sesame-1"), ("bob", "sesame-2")]).unwrap()
}

/// A request, with the header `Host` unless `headers` has it.
fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if !headers.iter().any(|(name, _)| *name == "host") {
        request = request.header("host", "localhost:8484");
    }
    if method == "POST" {
        request = request.header("content-type", "application/x-www-form-urlencoded");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

async fn get_page(console: &Router, path: &str, headers: &[(&str, &str)]) -> Response {
    console.clone().oneshot(request("GET", path, headers, "")).await.unwrap()
}

async fn post_form(console: &Router, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    console.clone().oneshot(request("POST", path, headers, body)).await.unwrap()
}

async fn text(reply: Response) -> String {
    String::from_utf8(to_bytes(reply.into_body(), 1 << 20).await.unwrap().into()).unwrap()
}

fn value(reply: &Response, name: HeaderName) -> &str {
    reply.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// The cookie that a reply stores, as browsers send it.
fn cookie(reply: &Response) -> String {
    value(reply, header::SET_COOKIE).split(';').next().unwrap().to_owned()
}

/// Signs in, and returns the cookie and the token for forms.
async fn sign_in(console: &Router) -> (String, String) {
    let reply = post_form(console, "/sign-in", &[], &format!("token={TOKEN}&to=%2F")).await;
    assert_eq!(reply.status(), StatusCode::SEE_OTHER);
    let cookie = cookie(&reply);
    let page = text(get_page(console, "/", &[("cookie", &cookie)]).await).await;
    let (_, csrf) = page.rsplit_once(' ').unwrap();
    (cookie, csrf.to_owned())
}

#[tokio::test]
async fn a_foreign_host_is_refused_everywhere() {
    for access in [Access::open(), token(), users()] {
        let console = console(access);
        for path in ["/", "/healthz", "/metrics", "/assets/console.css", "/sign-in", "/missing"] {
            let reply = get_page(&console, path, &[("host", "evil.example:8484")]).await;
            assert_eq!(reply.status(), StatusCode::MISDIRECTED_REQUEST, "{path}");
            assert_eq!(reply.headers()["x-frame-options"], "DENY");
            let text = text(reply).await;
            assert!(text.contains("evil.example:8484") && text.contains("--host"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_request_names_exactly_one_host() {
    let console = console(Access::open());
    let send = async |request: Request<Body>| console.clone().oneshot(request).await.unwrap().status();
    let without = || Request::builder().body(Body::empty()).unwrap();
    assert_eq!(send(without()).await, StatusCode::MISDIRECTED_REQUEST);
    let mut twice = request("GET", "/", &[], "");
    twice.headers_mut().append("host", "localhost".parse().unwrap());
    assert_eq!(send(twice).await, StatusCode::MISDIRECTED_REQUEST);
    let mut bytes = without();
    let host = HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    bytes.headers_mut().insert("host", host);
    assert_eq!(send(bytes).await, StatusCode::MISDIRECTED_REQUEST);
    // Targets as of HTTP/2 and proxies.
    assert_eq!(send(request("GET", "http://evil.example/", &[], "")).await, StatusCode::MISDIRECTED_REQUEST);
    let mut target = without();
    *target.uri_mut() = "http://zk.example/".parse().unwrap();
    assert_eq!(send(target).await, StatusCode::OK);
    for good in ["zk.example", "ZK.EXAMPLE:443", "10.1.2.3:8484", "[::1]:8484"] {
        assert_eq!(get_page(&console, "/", &[("host", good)]).await.status(), StatusCode::OK, "{good}");
    }
}

#[tokio::test]
async fn every_reply_has_the_headers() {
    let console = console(token());
    for (path, cache) in [
        ("/", "no-store"),
        ("/sign-in", "no-store"),
        ("/missing", "no-store"),
        ("/api/v1/recipes", "no-store"),
        ("/assets/console.css", "no-cache"),
        ("/assets/missing", "no-cache"),
    ] {
        for method in ["GET", "HEAD", "POST", "BREW"] {
            let reply = console.clone().oneshot(request(method, path, &[], "")).await.unwrap();
            let name = |name: &str| reply.headers()[name].to_str().unwrap().to_owned();
            assert_eq!(
                name("content-security-policy"),
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                 form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
            );
            for (header, wanted) in [
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "same-origin"),
                ("cross-origin-opener-policy", "same-origin"),
                ("cross-origin-resource-policy", "same-origin"),
                ("x-frame-options", "DENY"),
                ("cache-control", cache),
            ] {
                assert_eq!(name(header), wanted, "{method} {path}");
            }
            assert!(name("permissions-policy").contains("camera=()"));
            assert!(!reply.headers().contains_key("strict-transport-security"));
        }
    }
}

#[tokio::test]
async fn an_open_console_starts_sessions_for_pages_only() {
    let console = console(Access::open());
    let mut page = request("GET", "/locks", &[], "");
    page.extensions_mut().insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 7], 1))));
    let reply = console.clone().oneshot(page).await.unwrap();
    let stored = value(&reply, header::SET_COOKIE).to_owned();
    assert!(
        stored.starts_with("docent_console_8484=") && stored.ends_with("; HttpOnly; SameSite=Strict; Path=/")
    );
    let cookie = cookie(&reply);
    let first = text(reply).await;
    assert!(first.starts_with("anonymous from 10.0.0.7 "), "{first}");
    let again = get_page(&console, "/", &[("cookie", &format!("a=b; {cookie}"))]).await;
    assert_eq!(value(&again, header::SET_COOKIE), "");
    let (_, csrf) = first.rsplit_once(' ').unwrap();
    assert_eq!(text(again).await, format!("anonymous {csrf}"));
    for path in
        ["/metrics", "/api/v1/recipes", "/healthz", "/readyz", "/assets/console.css", "/events", "/sign-in"]
    {
        let reply = get_page(&console, path, &[]).await;
        assert_eq!(value(&reply, header::SET_COOKIE), "", "{path}");
    }
    let program = get_page(&console, "/", &[("authorization", "Bearer x")]).await;
    assert_eq!((program.status(), value(&program, header::SET_COOKIE)), (StatusCode::OK, ""));
}

#[tokio::test]
async fn cookies_have_the_path_of_the_base_and_are_secure_on_request() {
    let console = console_at(Access::open(), "/console", true);
    let reply = get_page(&console, "/", &[]).await;
    let stored = value(&reply, header::SET_COOKIE);
    assert!(stored.ends_with("; HttpOnly; SameSite=Strict; Path=/console; Secure"), "{stored}");
    let reply = get_page(&console_at(token(), "/console", false), "/locks", &[]).await;
    assert_eq!(value(&reply, header::LOCATION), "/console/sign-in?to=/locks");
    let page = text(get_page(&console_at(token(), "/console", false), "/sign-in", &[]).await).await;
    assert!(
        page.contains("href=\"/console/assets/console.css\"") && page.contains("action=\"/console/sign-in\"")
    );
}

#[tokio::test]
async fn forms_need_the_token_of_the_session() {
    let console = console(Access::open());
    let open = async || {
        let reply = get_page(&console, "/", &[]).await;
        let cookie = cookie(&reply);
        (cookie, text(reply).await.rsplit_once(' ').unwrap().1.to_owned())
    };
    let ((cookie, csrf), (_, other)) = (open().await, open().await);
    let post = async |cookie: &str, body: &str| {
        let reply = post_form(&console, "/act", &[("cookie", cookie)], body).await;
        (reply.status(), text(reply).await)
    };
    assert_eq!(post(&cookie, &format!("csrf={csrf}")).await, (StatusCode::OK, "done".to_owned()));
    for body in [String::new(), "csrf=".to_owned(), format!("csrf={other}")] {
        let (status, text) = post(&cookie, &body).await;
        assert!(status == StatusCode::FORBIDDEN && text.contains("load the page again"), "{text}");
    }
    assert_eq!(post("", "csrf=").await.0, StatusCode::FORBIDDEN);
    assert_eq!(post("docent_console_8484=x", &format!("csrf={csrf}")).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let console = console(token());
    let (cookie, csrf) = sign_in(&console).await;
    let post = async |headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([("cookie", &*cookie)]).collect();
        let reply = post_form(&console, "/act", &headers, &format!("csrf={csrf}")).await;
        (reply.status(), text(reply).await)
    };
    for good in [
        &[][..],
        &[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:8484")],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://zk.example:8484"), ("host", "zk.example:8484")],
    ] {
        assert_eq!(post(good).await, (StatusCode::OK, "done".to_owned()), "{good:?}");
    }
    for (bad, part) in [
        (("sec-fetch-site", "cross-site"), "another site"),
        (("sec-fetch-site", "same-site"), "another site"),
        (("sec-fetch-site", ""), "another site"),
        (("origin", "null"), "Origin"),
        (("origin", "http://evil.example"), "Origin"),
        (("origin", "http://localhost:8485"), "Origin"),
    ] {
        let (status, text) = post(&[bad]).await;
        assert!(status == StatusCode::FORBIDDEN && text.contains(part), "{bad:?}: {text}");
    }
    let sign_in = [("sec-fetch-site", "cross-site")];
    let reply = post_form(&console, "/sign-in", &sign_in, &format!("token={TOKEN}")).await;
    assert_eq!((reply.status(), value(&reply, header::SET_COOKIE)), (StatusCode::FORBIDDEN, ""));
}

#[tokio::test]
async fn other_sites_may_link_to_pages_but_not_fetch_or_embed_them() {
    let console = console(Access::open());
    let get = async |path: &str, site: &str, mode: &str, dest: &str| {
        let headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
        get_page(&console, path, &headers).await.status()
    };
    for path in ["/", "/events", "/metrics", "/api/v1/recipes", "/assets/console.css", "/healthz"] {
        for site in ["cross-site", "same-site"] {
            assert_eq!(get(path, site, "navigate", "document").await, StatusCode::OK, "{path}");
            for (mode, dest) in
                [("no-cors", "image"), ("cors", "empty"), ("navigate", "iframe"), ("websocket", "document")]
            {
                assert_eq!(get(path, site, mode, dest).await, StatusCode::FORBIDDEN, "{path} {mode} {dest}");
            }
        }
        assert_eq!(get(path, "same-origin", "cors", "empty").await, StatusCode::OK, "{path}");
        assert_eq!(get(path, "none", "navigate", "document").await, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_token_is_needed_for_everything_but_public_paths() {
    let console = console(token());
    for path in ["/healthz", "/readyz", "/assets/console.css", "/sign-in"] {
        assert_eq!(get_page(&console, path, &[]).await.status(), StatusCode::OK, "{path}");
    }
    for (path, to) in [("/", "/"), ("/locks?q=a&b", "/locks%3Fq%3Da%26b"), ("/missing", "/missing")] {
        let reply = get_page(&console, path, &[]).await;
        assert_eq!(reply.status(), StatusCode::SEE_OTHER, "{path}");
        assert_eq!(value(&reply, header::LOCATION), format!("/sign-in?to={to}"));
    }
    for path in ["/metrics", "/api/v1/recipes", "/events", "/api", "/api/v1/missing"] {
        let reply = get_page(&console, path, &[]).await;
        assert_eq!(reply.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(value(&reply, header::WWW_AUTHENTICATE).starts_with("Bearer "));
    }
    assert_eq!(post_form(&console, "/act", &[], "").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(post_form(&console, "/sign-out", &[], "").await.status(), StatusCode::UNAUTHORIZED);
    for path in [
        "/Healthz",
        "/healthz/",
        "/assets",
        "//assets/console.css",
        "/%61ssets/x",
        "/at/assets/x",
        "/sign-in/",
    ] {
        let reply = get_page(&console, path, &[]).await;
        assert_eq!(reply.status(), StatusCode::SEE_OTHER, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn programs_send_the_token_with_each_request() {
    let console = console(token());
    let bearer = format!("Bearer {TOKEN}");
    for path in ["/metrics", "/api/v1/recipes"] {
        for good in [&bearer, &bearer.replace("Bearer", "bearer")] {
            let reply = get_page(&console, path, &[("authorization", good)]).await;
            assert_eq!((reply.status(), value(&reply, header::SET_COOKIE)), (StatusCode::OK, ""), "{path}");
            assert_eq!(text(reply).await, "token ");
        }
        for bad in ["Bearer wrong", "Bearer", "Bearer ", "Basic eDp5", "x", "\u{ff}"] {
            let reply = get_page(&console, path, &[("authorization", bad)]).await;
            assert_eq!(reply.status(), StatusCode::UNAUTHORIZED, "{bad:?}");
        }
    }
    let reply = get_page(&console, "/locks", &[("authorization", &bearer)]).await;
    assert_eq!(reply.status(), StatusCode::SEE_OTHER, "pages need a session");
}

#[tokio::test(start_paused = true)]
async fn signing_in_starts_a_session_with_another_id() {
    let console = console(token());
    let planted = "docent_console_8484=planted";
    let form = format!("token={TOKEN}&to=%2Flocks%3Fq%3Da");
    let reply = post_form(&console, "/sign-in", &[("cookie", planted)], &form).await;
    assert_eq!((reply.status(), value(&reply, header::LOCATION)), (StatusCode::SEE_OTHER, "/locks?q=a"));
    let first = cookie(&reply);
    assert!(first.starts_with("docent_console_8484=") && first.len() == planted.len() - 7 + 43, "{first}");
    assert!(value(&reply, header::SET_COOKIE).ends_with("; HttpOnly; SameSite=Strict; Path=/"));
    let is_in =
        async |cookie: &str| get_page(&console, "/", &[("cookie", cookie)]).await.status() == StatusCode::OK;
    assert!(is_in(&first).await && !is_in(planted).await);
    let reply = post_form(&console, "/sign-in", &[("cookie", &first)], &form).await;
    let second = cookie(&reply);
    assert!(second != first && is_in(&second).await && !is_in(&first).await);
    let wrong = post_form(&console, "/sign-in", &[], "token=wrong").await;
    assert_eq!((wrong.status(), value(&wrong, header::SET_COOKIE)), (StatusCode::FORBIDDEN, ""));
    assert!(text(wrong).await.contains("role=\"alert\""));
}

#[tokio::test]
async fn signing_in_leads_to_no_other_site() {
    let console = console(token());
    for evil in ["https://evil.example", "//evil.example", "/\\evil.example", "/\t/evil.example", "/\r\nX: y"]
    {
        let to = super::local_path::as_value(evil);
        let reply = post_form(&console, "/sign-in", &[], &format!("token={TOKEN}&to={to}")).await;
        assert_eq!(
            (reply.status(), value(&reply, header::LOCATION)),
            (StatusCode::SEE_OTHER, "/"),
            "{evil:?}"
        );
        let page = text(get_page(&console, &format!("/sign-in?to={to}"), &[]).await).await;
        assert!(!page.contains("evil"), "{page}");
        let open = get_page(&self::console(Access::open()), &format!("/sign-in?to={to}"), &[]).await;
        assert_eq!(value(&open, header::LOCATION), "/", "{evil:?}");
    }
}

#[tokio::test]
async fn a_link_of_another_site_leads_signed_in_browsers_to_the_page() {
    let console = console_at(token(), "/console", false);
    let show = async |site: &str| {
        let headers =
            [("sec-fetch-site", site), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
        text(get_page(&console, "/sign-in?to=/at/a%22b", &headers).await).await
    };
    for elsewhere in ["cross-site", "same-site"] {
        let page = show(elsewhere).await;
        assert!(page.contains("http-equiv=\"refresh\" content=\"0;url=/console/at/a&quot;b\""), "{page}");
        assert!(!page.contains("<form"), "{page}");
    }
    for here in ["same-origin", "none"] {
        assert!(show(here).await.contains("<form"), "{here}");
    }
    let link =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    let evil = get_page(&console, "/sign-in?to=//evil.example", &link).await;
    assert!(text(evil).await.contains("content=\"0;url=/console\""));
}

#[tokio::test]
async fn a_link_of_another_site_does_not_end_the_session_of_an_open_console() {
    let console = console_at(Access::open(), "/console", false);
    let link =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    for (path, target) in [("/at/a%22b", "/at/a%22b"), ("/", ""), ("//evil.example", "")] {
        let reply = get_page(&console, path, &link).await;
        assert_eq!(value(&reply, header::SET_COOKIE), "");
        let page = text(reply).await;
        assert!(page.contains(&format!("content=\"0;url=/console{target}\"")), "{page}");
    }
}

#[tokio::test]
async fn the_page_to_sign_in_escapes_what_it_shows() {
    let page =
        text(get_page(&console(token()), "/sign-in?to=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E", &[]).await);
    let page = page.await;
    assert!(page.contains("value=\"/&quot;&gt;&lt;script&gt;"), "{page}");
    assert!(!page.contains("<script") && !page.contains("style="), "{page}");
    assert!(page.contains("href=\"/assets/console.css\""), "{page}");
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens_are_slow_and_limited_but_signed_in_browsers_are_not() {
    let console = console(token());
    let (cookie, _) = sign_in(&console).await;
    for _ in 0..5 {
        let began = Instant::now();
        let reply = post_form(&console, "/sign-in", &[], "token=wrong").await;
        assert!(reply.status() == StatusCode::FORBIDDEN && began.elapsed() >= super::sign_in::PAUSE);
        let began = Instant::now();
        let reply = get_page(&console, "/metrics", &[("authorization", "Bearer wrong")]).await;
        assert!(reply.status() == StatusCode::UNAUTHORIZED && began.elapsed() >= super::sign_in::PAUSE);
    }
    let right = format!("token={TOKEN}");
    let reply = post_form(&console, "/sign-in", &[], &right).await;
    assert_eq!(reply.status(), StatusCode::TOO_MANY_REQUESTS);
    let seconds: u64 = value(&reply, header::RETRY_AFTER).parse().unwrap();
    assert!((50..=60).contains(&seconds), "{seconds}");
    let bearer = format!("Bearer {TOKEN}");
    let reply = get_page(&console, "/metrics", &[("authorization", &bearer)]).await;
    assert_eq!(reply.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(get_page(&console, "/", &[("cookie", &cookie)]).await.status(), StatusCode::OK);
    let mut elsewhere = request("POST", "/sign-in", &[], &right);
    elsewhere.extensions_mut().insert(ConnectInfo(SocketAddr::from(([10, 0, 0, 7], 1))));
    assert_eq!(console.clone().oneshot(elsewhere).await.unwrap().status(), StatusCode::SEE_OTHER);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(post_form(&console, "/sign-in", &[], &right).await.status(), StatusCode::SEE_OTHER);
}

#[tokio::test]
async fn signing_out_ends_the_session_and_its_event_streams() {
    let console = console(token());
    let (cookie, csrf) = sign_in(&console).await;
    let headers = [("cookie", &*cookie)];
    let mut events = get_page(&console, "/events", &headers).await.into_body().into_data_stream();
    assert_eq!(events.next().await.unwrap().unwrap(), "event: patch\n\n");
    let refused = post_form(&console, "/sign-out", &headers, "csrf=wrong").await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert_eq!(get_page(&console, "/sign-out", &headers).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(get_page(&console, "/", &headers).await.status(), StatusCode::OK);
    let reply = post_form(&console, "/sign-out", &headers, &format!("csrf={csrf}")).await;
    assert_eq!(reply.status(), StatusCode::SEE_OTHER);
    assert!(value(&reply, header::SET_COOKIE).contains("Max-Age=0"));
    assert_eq!(get_page(&console, "/", &headers).await.status(), StatusCode::SEE_OTHER);
    let ended = timeout(Duration::from_secs(60), events.next()).await;
    assert!(ended.expect("the stream must end").is_none());
}

#[tokio::test(start_paused = true)]
async fn users_authenticate_each_request_and_have_their_own_tokens_for_forms() {
    let console = console(users());
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    let page = async |authorization: &str| get_page(&console, "/", &[("authorization", authorization)]).await;
    let (ann, bob) = (basic("ann:sesame-1"), basic("bob:sesame-2"));
    let reply = page(&ann).await;
    assert_eq!((reply.status(), value(&reply, header::SET_COOKIE)), (StatusCode::OK, ""));
    let text_of_ann = text(reply).await;
    let csrf = text_of_ann.strip_prefix("ann ").unwrap();
    assert!(text(page(&bob).await).await.starts_with("bob "));
    for (user, status) in [(&ann, StatusCode::OK), (&bob, StatusCode::FORBIDDEN)] {
        let reply = post_form(&console, "/act", &[("authorization", user)], &format!("csrf={csrf}")).await;
        assert_eq!(reply.status(), status);
    }
    for bad in [
        basic("ann:sesame-2"),
        basic("ann"),
        basic("ann:"),
        basic("eve:sesame-1"),
        basic(":"),
        "Basic ???".into(),
        format!("Basic {}", STANDARD.encode([0xff, 0xfe])),
        "Bearer sesame-1".into(),
    ] {
        let reply = page(&bad).await;
        assert_eq!(reply.status(), StatusCode::UNAUTHORIZED, "{bad}");
        assert!(value(&reply, header::WWW_AUTHENTICATE).starts_with("Basic realm="));
    }
    assert_eq!(get_page(&console, "/metrics", &[]).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(get_page(&console, "/healthz", &[]).await.status(), StatusCode::OK);
    let bye = post_form(&console, "/sign-out", &[("authorization", &ann)], &format!("csrf={csrf}")).await;
    assert_eq!(bye.status(), StatusCode::UNAUTHORIZED, "browsers then forget the password");
}

#[tokio::test(start_paused = true)]
async fn a_form_has_a_size_and_arrives_in_time() {
    let console = console(Access::open());
    let large = "a".repeat(65 << 10);
    assert_eq!(post_form(&console, "/act", &[], &large).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let mut slow = request("POST", "/act", &[], "");
    *slow.body_mut() = Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    let began = Instant::now();
    assert_eq!(console.clone().oneshot(slow).await.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    assert!(began.elapsed() <= Duration::from_secs(11), "{:?}", began.elapsed());
}

#[tokio::test]
async fn other_methods_and_bytes_are_answered() {
    let console = console(token());
    for method in ["HEAD", "OPTIONS", "TRACE", "PUT", "BREW"] {
        let reply = console.clone().oneshot(request(method, "/locks", &[], "")).await.unwrap();
        assert!(reply.status().is_client_error() || reply.status().is_redirection(), "{method}");
    }
    for (names, status) in [
        (["cookie", "authorization"], StatusCode::SEE_OTHER),
        (["origin", "sec-fetch-site"], StatusCode::FORBIDDEN),
    ] {
        let mut odd = request("GET", "/locks", &[], "");
        for name in names {
            let value = HeaderValue::from_bytes(b"docent_console_8484=\xff\xfe").unwrap();
            odd.headers_mut().insert(HeaderName::from_static(name), value);
        }
        assert_eq!(console.clone().oneshot(odd).await.unwrap().status(), status, "{names:?}");
    }
}
