//! A Curator client in a process of its own.

use docent::Client;
use docent_battery::TestServer;
use docent_tests::peer::{Peer, Theirs};
use docent_tests::{SESSION, builder};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/Peer.java");

/// Data that both write into nodes where nothing else is asked for.
pub(crate) const IDENTITY: &str = "10.0.0.7";

const JARS: [&str; 5] = [
    "/usr/share/java/curator-client.jar",
    "/usr/share/java/curator-framework.jar",
    "/usr/share/java/curator-recipes.jar",
    "/usr/share/java/curator-x-discovery.jar",
    "/usr/share/java/slf4j-nop.jar",
];
const MISSING: &str = "install libcurator-recipes-java, libcurator-discovery-java and default-jdk-headless";

/// A Java process takes 250 MB: there are two at most besides the server.
static PROCESSES: Semaphore = Semaphore::const_new(2);

/// Process with a Curator client below the root of a test. `Peer.java` says what goes over its pipes.
///
/// # On drop
/// The process is killed.
pub(crate) struct Curator {
    peer: Peer,
    _permit: SemaphorePermit<'static>,
}

/// A client of ours and one of Curator's.
pub(crate) async fn both(server: &TestServer) -> (Client, Curator) {
    let ours = builder(server, server.connect_string()).identity(IDENTITY);
    (ours.connect().await.unwrap(), Curator::start(server).await)
}

impl Curator {
    /// Starts it and waits until it is connected.
    pub(crate) async fn start(server: &TestServer) -> Self {
        Self::start_with(server, SESSION).await
    }

    /// As [`start`](Self::start), with this session timeout.
    pub(crate) async fn start_with(server: &TestServer, session_timeout: Duration) -> Self {
        for jar in JARS {
            assert!(Path::new(jar).is_file(), "no {jar}: {MISSING}");
        }
        let permit = PROCESSES.acquire().await.unwrap();
        let mut java = Command::new("java");
        java.args(["-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", &JARS.join(":"), PROGRAM])
            .arg(format!("{}{}", server.connect_string(), server.root()))
            .args([&session_timeout.as_millis().to_string(), IDENTITY]);
        Self { peer: Peer::start(&mut java, MISSING).await, _permit: permit }
    }

    /// Makes one of its recipes: a kind that `Peer.java` knows, with its arguments.
    pub(crate) async fn make(&self, what: &str) -> Theirs<'_> {
        self.peer.make(what).await
    }

    /// Ends the process as a crash does.
    pub(crate) fn kill(&mut self) {
        self.peer.kill();
    }
}
