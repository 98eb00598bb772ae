//! Helpers shared by the suites in the folders beside this file.

pub mod bound;
pub mod contenders;
pub mod double_barriers;
pub mod fake;
mod refusals;
mod stalled;

pub use refusals::{frames_since, refuses_bad_paths};
pub use stalled::Stalled;

use docent::client::ClientBuilder;
use docent::recipe::RecipeKind;
use docent::{Client, ErrorKind};
use docent_battery::{ServerOptions, TestServer};
use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// A recipe kind for tests.
pub static KIND: RecipeKind = RecipeKind::new("test", "acquire");

/// Returns the tick of the test servers.
pub fn tick() -> Duration {
    ServerOptions::default().tick
}

/// A session timeout of ten ticks. The lease is two thirds of it, 1.33 s.
pub const SHORT_SESSION: Duration = Duration::from_secs(2);

/// A session timeout that no pause of a busy machine reaches.
pub const SESSION: Duration = Duration::from_secs(8);

/// Time limit of every wait in a test, which only a wait without an end reaches, also on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the settings of a client of `server` that connects to `connect_string`, below the test's own path.
pub fn builder(server: &TestServer, connect_string: impl AsRef<str>) -> ClientBuilder {
    server
        .client_builder(connect_string)
        .namespace(server.root())
        .session_timeout(SESSION)
        .server_tick(tick())
        .operation_timeout(PATIENCE)
}

/// Returns the settings of a client whose session timeout is below four ticks, too short for a lease.
pub fn short_of_a_lease(server: &TestServer) -> ClientBuilder {
    builder(server, server.connect_string())
        .session_timeout(Duration::from_secs(2))
        .server_tick(Duration::from_secs(1))
}

/// Connects a client.
///
/// # Panics
///
/// Panics if the client does not connect.
pub async fn connect(server: &TestServer) -> Client {
    builder(server, server.connect_string()).connect().await.expect("a running server opens a session")
}

/// Returns the paths of all sessions' own nodes in the shared folder at the root of the client's namespace:
/// the markers of exact writes, and the witnesses of sessions that keep nodes.
///
/// # Panics
///
/// Panics if a folder cannot be listed.
pub async fn own_nodes(client: &Client) -> Vec<String> {
    own_nodes_in(client, "").await
}

/// Does the same as [`own_nodes`], for the folder below `root`.
///
/// # Panics
///
/// Panics if a folder cannot be listed.
pub async fn own_nodes_in(client: &Client, root: &str) -> Vec<String> {
    let list = async |folder: &str| match client.children(folder).await {
        Ok(children) => children.names,
        Err(error) if error.kind() == ErrorKind::NoNode => Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let mut nodes = Vec::new();
    for session in list(&format!("{root}/_docent")).await {
        let folder = format!("{root}/_docent/{session}");
        nodes.extend(list(&folder).await.into_iter().map(|name| format!("{folder}/{name}")));
    }
    nodes
}

/// Waits for `future`, at most for [`PATIENCE`].
///
/// # Panics
///
/// Panics if `future` takes longer.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("the future finishes within the time limit")
}

/// Waits until `holds` returns true, calling it repeatedly.
///
/// # Panics
///
/// Panics if that takes longer than [`PATIENCE`].
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    soon(async {
        while !holds().await {
            pause().await;
        }
    })
    .await;
}

/// Pauses between two checks of a test that waits for something. Paused time advances meanwhile, and all
/// other tasks run until they wait.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Returns the number of children of `path`, or zero if the node does not exist. Servers delete an empty
/// container after a while.
///
/// # Panics
///
/// Panics if the node cannot be listed.
pub async fn child_count(client: &Client, path: &str) -> usize {
    match client.children(path).await {
        Ok(children) => children.names.len(),
        Err(error) if error.kind() == ErrorKind::NoNode => 0,
        Err(error) => panic!("{path}: {error}"),
    }
}

/// Waits for `future`, at most for `limit` of the time in which this thread runs. While a busy machine pauses
/// the test, the limit is paused as well.
///
/// # Panics
///
/// Panics if `future` takes longer.
pub async fn within<F: Future>(limit: Duration, future: F) -> F::Output {
    const BEAT: Duration = Duration::from_millis(10);
    let (mut future, mut remaining) = (pin!(future), limit);
    loop {
        // A beat counts once, even if it took longer.
        if let Ok(output) = tokio::time::timeout(BEAT, &mut future).await {
            return output;
        }
        remaining = remaining
            .checked_sub(BEAT)
            .unwrap_or_else(|| panic!("the future did not finish within {limit:?}"));
    }
}

/// Repeats an attempt that must take at most `limit`, because a busy machine may delay it or its servers. The
/// attempt must be in time once. It returns how long it took.
///
/// # Panics
///
/// Panics if every attempt took longer.
pub async fn in_time(limit: Duration, mut attempt: impl AsyncFnMut() -> Duration) {
    const ATTEMPTS: usize = 4;
    let mut late = Vec::new();
    while late.len() < ATTEMPTS {
        let took = attempt().await;
        if took <= limit {
            return;
        }
        late.push(took);
    }
    panic!("every attempt took longer than {limit:?}: {late:?}");
}

/// Waits for `future` as long as `progress` grows, for work that is slow on a busy machine.
///
/// # Panics
///
/// Panics if there was no progress within [`PATIENCE`].
pub async fn while_progressing<F: Future>(progress: impl Fn() -> usize, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let before = progress();
        if let Ok(output) = tokio::time::timeout(PATIENCE, &mut future).await {
            return output;
        }
        assert!(progress() > before, "no progress after {before}");
    }
}

/// Returns the text of an error and of its causes.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
