use super::attempts::Verdict;
use super::gate::Gate;
use super::local_path::local_path;
use super::peer::Peer;
use super::visitor::{Visitor, is_from_elsewhere};
use super::{access::Kind, cookie};
use axum::extract::{Form, Query, State};
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, html};
use serde::Deserialize;
use std::time::Duration;

/// Time after which a wrong token or password is answered.
pub(super) const PAUSE: Duration = Duration::from_millis(500);

/// Query of the page.
#[derive(Debug, Deserialize)]
pub(super) struct Target {
    #[serde(default)]
    to: String,
}

/// Form of the page. Not printable, because it has the token.
#[derive(Deserialize)]
pub(super) struct Submitted {
    #[serde(default)]
    token: String,
    #[serde(default)]
    to: String,
}

/// Form of the button that signs out.
#[derive(Deserialize)]
pub(super) struct Leaving {
    #[serde(default)]
    csrf: String,
}

/// Shows the form for the token. Consoles without token have no form.
///
/// A browser that follows a link of another site does not send the cookie, even if it is signed in. It is
/// sent to the page once more, from here: that request has the cookie.
pub(super) async fn show(
    State(gate): State<Gate>,
    headers: HeaderMap,
    Query(target): Query<Target>,
) -> Response {
    match gate.kind() {
        Kind::Token(_) if is_from_elsewhere(&headers) => {
            once_more(&gate, local_path(&target.to)).into_response()
        }
        Kind::Token(_) => page(&gate, &target.to, None).into_response(),
        Kind::Open | Kind::Basic(_) => gate.see_other(local_path(&target.to)),
    }
}

/// Starts a session with an id that no one knew before, so that an id that was planted in a browser is worth
/// nothing.
pub(super) async fn submit(
    State(gate): State<Gate>,
    extensions: Extensions,
    headers: HeaderMap,
    Form(form): Form<Submitted>,
) -> Response {
    let Kind::Token(token) = gate.kind() else { return gate.see_other(local_path(&form.to)) };
    match gate.judge(Peer::of(&extensions), || token.matches(form.token.trim()).then_some(())) {
        Verdict::Right(()) => {
            let id = gate.replace_session(cookie::ids(&headers));
            let mut reply = gate.see_other(local_path(&form.to));
            reply.headers_mut().append(header::SET_COOKIE, gate.cookie().store(&headers, &id));
            reply
        }
        Verdict::Wrong => {
            tokio::time::sleep(PAUSE).await;
            (StatusCode::FORBIDDEN, page(&gate, &form.to, Some("This is not the token."))).into_response()
        }
        Verdict::Limited(wait) => limited(wait),
    }
}

/// Ends the session. Browsers forget a user and password when these are refused.
pub(super) async fn sign_out(
    State(gate): State<Gate>,
    visitor: Visitor,
    headers: HeaderMap,
    Form(form): Form<Leaving>,
) -> Response {
    if let Err(refused) = visitor.check(&headers, &form.csrf) {
        return refused.into_response();
    }
    if let Kind::Basic(_) = gate.kind() {
        return unauthorized(BASIC, "signed out\n");
    }
    gate.end_sessions(cookie::ids(&headers));
    let mut reply = gate.see_other("/");
    reply.headers_mut().append(header::SET_COOKIE, gate.cookie().delete(&headers));
    reply
}

/// How clients of a console with users authenticate.
pub(super) const BASIC: &str = "Basic realm=\"Docent console\", charset=\"UTF-8\"";

/// How programs authenticate to a console with a token.
pub(super) const BEARER: &str = "Bearer realm=\"Docent console\"";

/// Returns the reply to a request without valid credentials.
pub(super) fn unauthorized(scheme: &'static str, text: &'static str) -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme))];
    (StatusCode::UNAUTHORIZED, challenge, text).into_response()
}

/// Returns the reply to a peer that has sent too many wrong tokens or passwords.
pub(super) fn limited(wait: Duration) -> Response {
    let seconds = wait.as_secs() + 1;
    let text = format!("too many wrong tokens or passwords; try again in {seconds} seconds\n");
    let retry = [(header::RETRY_AFTER, HeaderValue::from(seconds))];
    (StatusCode::TOO_MANY_REQUESTS, retry, text).into_response()
}

/// Returns a page that opens a path below the base from this site, so that the browser sends its cookie.
pub(super) fn once_more(gate: &Gate, to: &str) -> Html<String> {
    let target = gate.address(to);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { "Docent" }
                meta http-equiv="refresh" content={ "0;url=" (target) };
            }
            body { a href=(target) { "Continue" } }
        }
    };
    Html(page.into_string())
}

fn page(gate: &Gate, to: &str, alert: Option<&str>) -> Html<String> {
    let base = gate.base();
    let body: Markup = html! {
        (DOCTYPE)
        html lang="en" data-page="sign-in" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Sign in – Docent" }
                link rel="stylesheet" href={ (base) "/assets/console.css" };
                link rel="icon" href={ (base) "/assets/icon.svg" };
            }
            body {
                main id="main" {
                    h1 { "Docent console" }
                    form class="sign-in" method="post" action={ (base) "/sign-in" } {
                        @if let Some(alert) = alert { p role="alert" class="alert" { (alert) } }
                        label for="token" { "Token" }
                        input id="token" type="password" name="token" required autofocus
                            autocomplete="current-password";
                        input type="hidden" name="to" value=(local_path(to));
                        button { "Sign in" }
                    }
                }
            }
        }
    };
    Html(body.into_string())
}
