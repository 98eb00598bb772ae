//! Operations bound to a guard end with the guard, whatever they wait for.

use crate::{SHORT_SESSION, builder, soon};
use docent::{Client, ConnectionState};
use docent_battery::{Direction, Proxy, TestServer};
use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;

/// State of the link while an operation waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// New links are refused, so the operation is not sent.
    Unsent,
    /// Replies arrive so slowly that the guard is lost before the link is. The operation was sent, and is not
    /// answered in time.
    Unanswered,
}

/// All states.
pub const WAITS: [Waits; 2] = [Waits::Unsent, Waits::Unanswered];

/// Returns a client with short leases and a long operation timeout, and its proxy.
///
/// # Panics
///
/// Panics if the client does not connect.
pub async fn patient(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    let builder = builder(server, proxy.connect_string()).session_timeout(SHORT_SESSION);
    (builder.connect().await.expect("a running server opens a session"), proxy)
}

impl Waits {
    /// Makes operations of the proxy's client wait from now on.
    pub async fn begin(self, proxy: &Proxy) {
        match self {
            Self::Unsent => proxy.cut().await,
            Self::Unanswered => proxy.set_throttle(Direction::ToClient, NonZeroU32::new(4)),
        }
    }
}

/// Waits for `operation` as [`until_lost`] does, and returns its error.
///
/// # Panics
///
/// Panics if the operation succeeds, or does not end with the guard.
pub async fn ends_with<T: fmt::Debug, E: fmt::Debug>(
    client: &Client,
    waits: Waits,
    lost: impl Future,
    operation: impl Future<Output = Result<T, E>>,
) -> E {
    let done = until_lost(client, waits, lost, operation).await;
    done.expect_err("the operation fails because the guard is lost")
}

/// Waits for `operation`, which is bound to a guard of `client`. The operation must end when `lost` resolves,
/// before the session or the link ends. Returns its output.
///
/// # Panics
///
/// Panics if the operation does not end with the guard.
pub async fn until_lost<T>(
    client: &Client,
    waits: Waits,
    lost: impl Future,
    operation: impl Future<Output = T>,
) -> T {
    let ended = async { tokio::join!(lost, operation).1 };
    let (mut states, before) = (client.state(), client.state().current());
    let later = states.wait_for(|connection| match waits {
        Waits::Unsent => connection.generation > before.generation || *connection == ConnectionState::Lost,
        Waits::Unanswered => connection.suspensions > before.suspensions,
    });
    soon(async {
        tokio::select! {
            biased;
            done = ended => done,
            _ = later => panic!("the operation ended only after the guard was lost"),
        }
    })
    .await
}
