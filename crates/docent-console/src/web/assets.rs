use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

pub(super) async fn style() -> Response {
    file("text/css; charset=utf-8", include_str!("../../assets/console.css"))
}

pub(super) async fn script() -> Response {
    file("text/javascript; charset=utf-8", include_str!("../../assets/console.js"))
}

pub(super) async fn icon() -> Response {
    file("image/svg+xml", include_str!("../../assets/icon.svg"))
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, kind)], text).into_response()
}
