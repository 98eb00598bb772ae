use docent_battery::{Backend, ServerOptions, TestServer};
use docent_shop::caller::Call;
use docent_shop::fleet::{Copy, Launch};
use docent_shop::settings::Coordination;
use docent_shop::stage::Stage;
use serde_json::Value;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Session timeout of the copies: short, but longer than a busy machine needs.
pub(crate) const SESSION: Duration = Duration::from_secs(3);

/// Name of the program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_shop");

/// Longer than anything that a test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Servers, and a folder for the copies. The copies must be dropped first.
pub(crate) struct Scene {
    pub(crate) server: TestServer,
    pub(crate) folder: TempDir,
    session: Duration,
}

impl Scene {
    pub(crate) async fn set(backend: Backend) -> Self {
        Self::with_sessions(backend, SESSION).await
    }

    /// Creates a scene like `set`, with another session timeout.
    pub(crate) async fn with_sessions(backend: Backend, session: Duration) -> Self {
        let options = ServerOptions::default().session_timeouts(SESSION, session);
        let server = backend.start_own_with(options).await;
        Self { server, folder: tempfile::tempdir().unwrap(), session }
    }

    pub(crate) fn launch(&self) -> Launch {
        let coordination = Coordination {
            connect: self.server.connect_string(),
            namespace: self.server.path("shop"),
            session_timeout: self.session,
            tick: ServerOptions::default().tick,
        };
        Launch { program: PROGRAM.into(), coordination, folder: self.folder.path().to_owned() }
    }

    /// Starts copies.
    pub(crate) async fn stage(&self, names: &[&str]) -> Stage {
        soon(Stage::set(self.launch(), names)).await.unwrap()
    }

    /// Returns the log of a copy.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.launch().log(name)).unwrap()
    }
}

/// Waits for `future`, with a time limit.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("the future finishes within the time limit")
}

/// Waits like `soon`, with a longer limit.
pub(crate) async fn patiently<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE * 3, future).await.expect("the future finishes within the time limit")
}

/// Waits until `holds` returns true, calling it repeatedly.
pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    soon(async {
        while !holds().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Returns the status and the body of one copy's answer, without the caller's classification.
pub(crate) async fn send(copy: &Copy, call: &Call) -> (u16, String) {
    let Call { method, path, body, .. } = call;
    let mut link = TcpStream::connect(copy.address()).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    link.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let mut response = String::new();
    soon(link.read_to_string(&mut response)).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Returns the answer to a request without a body.
pub(crate) async fn get(copy: &Copy, path: &str) -> (u16, String) {
    let call = Call { path: path.to_owned(), ..docent_shop::traffic::read_stock() };
    send(copy, &call).await
}

/// Returns the answer of a copy's `/readyz`.
pub(crate) async fn readiness(copy: &Copy) -> Value {
    serde_json::from_str(&get(copy, "/readyz").await.1).unwrap()
}
