use crate::access::Visitor;
use crate::console::Inner;
use crate::pages::{Drawn, Frame, View, document, message};
use axum::response::{Html, IntoResponse, Response};
use docent::{Error, ErrorKind};
use http::StatusCode;
use maud::{Markup, html};

/// Returns a page that is not live.
pub(super) fn page(inner: &Inner, visitor: &Visitor, status: StatusCode, drawn: &Drawn) -> Response {
    framed(inner, visitor, status, drawn, None)
}

/// Returns a page that is kept up to date by the events of a view, if there is one.
pub(super) fn framed(
    inner: &Inner,
    visitor: &Visitor,
    status: StatusCode,
    drawn: &Drawn,
    view: Option<&View>,
) -> Response {
    let (page, events) = (view.map_or("", View::page), view.map(View::address));
    let frame = Frame { page, pen: inner.pen(), visitor, events };
    (status, Html(document(&inner.world, &frame, drawn).into_string())).into_response()
}

/// Returns a page with a message.
pub(super) fn say(
    inner: &Inner,
    visitor: &Visitor,
    status: StatusCode,
    title: &str,
    text: &Markup,
) -> Response {
    page(inner, visitor, status, &message(title, text))
}

/// Returns a page for a request that got no permit to read.
pub(super) fn busy(inner: &Inner, visitor: &Visitor) -> Response {
    let text = html! { p.error { "Too many requests wait for ZooKeeper. Try again." } };
    say(inner, visitor, StatusCode::SERVICE_UNAVAILABLE, "Busy", &text)
}

/// Returns a page about an error of ZooKeeper.
pub(super) fn failure(inner: &Inner, visitor: &Visitor, error: &Error) -> Response {
    let text = html! { p.error { (error.to_string()) } };
    say(inner, visitor, status(error), "This could not be read", &text)
}

/// Returns the status for an error of ZooKeeper.
pub(super) fn status(error: &Error) -> StatusCode {
    match error.kind() {
        ErrorKind::NoNode => StatusCode::NOT_FOUND,
        ErrorKind::NoAuth => StatusCode::FORBIDDEN,
        ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}
