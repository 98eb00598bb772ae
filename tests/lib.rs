//! Helpers that the suites in the folders beside this file share.

pub mod bound;
pub mod contenders;
pub mod double_barriers;
pub mod fake;
pub mod peer;
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

/// A recipe that only tests have.
pub static KIND: RecipeKind = RecipeKind::new("test", "acquire");

/// The servers' tick in tests.
pub fn tick() -> Duration {
    ServerOptions::default().tick
}

/// A session timeout of ten ticks: the lease is two thirds of it, 1.33 s.
pub const SHORT_SESSION: Duration = Duration::from_secs(2);

/// A session timeout that outlives a busy machine.
pub const SESSION: Duration = Duration::from_secs(8);

/// Longer than anything a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Settings of a client of `server`, below the test's own path, connecting to `connect_string`.
pub fn builder(server: &TestServer, connect_string: impl AsRef<str>) -> ClientBuilder {
    server
        .client_builder(connect_string)
        .namespace(server.root())
        .session_timeout(SESSION)
        .server_tick(tick())
        .operation_timeout(PATIENCE)
}

/// Settings of a client whose session timeout is below four ticks: too short for a lease.
pub fn short_of_a_lease(server: &TestServer) -> ClientBuilder {
    builder(server, server.connect_string())
        .session_timeout(Duration::from_secs(2))
        .server_tick(Duration::from_secs(1))
}

/// A client with a session of its own.
///
/// # Panics
/// When it does not connect.
pub async fn connect(server: &TestServer) -> Client {
    builder(server, server.connect_string()).connect().await.expect("a running server opens a session")
}

/// Paths of the nodes that sessions keep for themselves in the shared folder at the root of the client's
/// namespace: the markers of exact writes, and witnesses of sessions that keep nodes.
///
/// # Panics
/// When a folder cannot be listed.
pub async fn own_nodes(client: &Client) -> Vec<String> {
    own_nodes_in(client, "").await
}

/// As [`own_nodes`], of sessions whose namespace begins with `root`.
///
/// # Panics
/// When a folder cannot be listed.
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

/// Waits for `future`, but not for ever.
///
/// # Panics
/// When it takes longer than any test waits.
pub async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it is done well before the test's patience ends")
}

/// Waits until `holds`, which is asked again and again.
///
/// # Panics
/// When it takes longer than any test waits.
pub async fn until(mut holds: impl AsyncFnMut() -> bool) {
    soon(async {
        while !holds().await {
            pause().await;
        }
    })
    .await;
}

/// The pause between two looks of a test that waits for something. Paused time goes on in it, and all other
/// tasks go as far as they can.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// The number of children of `path`: none where it is gone, as an empty container is after a while.
///
/// # Panics
/// When it cannot be listed.
pub async fn child_count(client: &Client, path: &str) -> usize {
    match client.children(path).await {
        Ok(children) => children.names.len(),
        Err(error) if error.kind() == ErrorKind::NoNode => 0,
        Err(error) => panic!("{path}: {error}"),
    }
}

/// Waits for `future`, at most for `limit` of the time that this thread was given: while a busy machine
/// pauses the test, the limit is paused, too.
///
/// # Panics
/// When it takes longer.
pub async fn within<F: Future>(limit: Duration, future: F) -> F::Output {
    const BEAT: Duration = Duration::from_millis(10);
    let (mut future, mut left) = (pin!(future), limit);
    loop {
        // However long it took, a beat counts once.
        if let Ok(output) = tokio::time::timeout(BEAT, &mut future).await {
            return output;
        }
        left = left.checked_sub(BEAT).unwrap_or_else(|| panic!("it is not done within {limit:?}"));
    }
}

/// Makes an attempt that takes at most `limit`, unless a busy machine makes it or its servers late: late once
/// is tried again, late each time is wrong. An attempt returns how long it took.
///
/// # Panics
/// When every attempt took longer.
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
    panic!("it took longer than {limit:?} each time: {late:?}");
}

/// Waits for `future` for as long as `progress` grows: work that a busy machine may make slow.
///
/// # Panics
/// When there was no progress for longer than any test waits.
pub async fn as_it_goes_on<F: Future>(progress: impl Fn() -> usize, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let before = progress();
        if let Ok(output) = tokio::time::timeout(PATIENCE, &mut future).await {
            return output;
        }
        assert!(progress() > before, "it is stuck after {before}");
    }
}

/// The text of an error and of what caused it.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
