//! A web server of a test.

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A web server on loopback.
///
/// # On drop
///
/// The server stops.
pub(crate) struct Site {
    port: u16,
    serving: JoinHandle<()>,
}

impl Site {
    /// Starts a server on a free port.
    pub(crate) async fn serve(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, serving }
    }

    /// The origin of its pages.
    pub(crate) fn origin(&self) -> String {
        self.origin_at("127.0.0.1")
    }

    /// The origin of its pages under another name of loopback.
    pub(crate) fn origin_at(&self, host: &str) -> String {
        format!("http://{host}:{}", self.port)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
