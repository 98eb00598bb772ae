//! Operations that are bound to a guard end with it, whatever they wait for.

use crate::{SHORT_SESSION, builder, soon};
use docent::{Client, ConnectionState};
use docent_battery::{Direction, Proxy, TestServer};
use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;

/// State of the link while an operation waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// New links are refused: the operation is not sent.
    Unsent,
    /// Replies trickle in so slowly that the guard is lost before the link is: the operation was sent, and is
    /// not answered.
    Unanswered,
}

/// All of them.
pub const WAITS: [Waits; 2] = [Waits::Unsent, Waits::Unanswered];

/// A client whose leases are short and whose operations may take long, and its proxy.
///
/// # Panics
/// When it does not connect.
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

/// Waits for `operation`, which is bound to a guard of `client`: it has to end when `lost` does, and not with
/// the session or the link. Returns its error.
///
/// # Panics
/// When it succeeds, or does not end with the guard.
pub async fn ends_with<T: fmt::Debug, E: fmt::Debug>(
    client: &Client,
    waits: Waits,
    lost: impl Future,
    operation: impl Future<Output = Result<T, E>>,
) -> E {
    let ended = async { tokio::join!(lost, operation).1 };
    let (mut states, before) = (client.state(), client.state().current());
    let later = states.wait_for(|connection| match waits {
        Waits::Unsent => connection.generation > before.generation || *connection == ConnectionState::Lost,
        Waits::Unanswered => connection.suspensions > before.suspensions,
    });
    let done = soon(async {
        tokio::select! {
            biased;
            done = ended => done,
            _ = later => panic!("it did not end with the guard, but later"),
        }
    });
    done.await.expect_err("the guard is lost")
}
