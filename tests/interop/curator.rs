//! A Curator client in a separate process.

use docent::Client;
use docent_battery::TestServer;
use docent_tests::peer::{Peer, PeerRecipe};
use docent_tests::{SESSION, builder};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/Peer.java");

/// Data of both libraries' nodes in tests that need no other data.
pub(crate) const IDENTITY: &str = "10.0.0.7";

const JARS: [&str; 5] = [
    "/usr/share/java/curator-client.jar",
    "/usr/share/java/curator-framework.jar",
    "/usr/share/java/curator-recipes.jar",
    "/usr/share/java/curator-x-discovery.jar",
    "/usr/share/java/slf4j-nop.jar",
];
const MISSING: &str = "install libcurator-recipes-java, libcurator-discovery-java and default-jdk-headless";

/// Limits the Java processes to two besides the server, because each takes 250 MB.
static PROCESSES: Semaphore = Semaphore::const_new(2);

/// A process with a Curator client below the root of a test. `Peer.java` describes the protocol on its pipes.
///
/// # On drop
///
/// The process is killed.
pub(crate) struct Curator {
    peer: Peer,
    _permit: SemaphorePermit<'static>,
}

/// Opens a Docent client and starts a Curator client.
pub(crate) async fn both(server: &TestServer) -> (Client, Curator) {
    let own = builder(server, server.connect_string()).identity(IDENTITY);
    (own.connect().await.unwrap(), Curator::start(server).await)
}

impl Curator {
    /// Starts the process and waits until its client is connected.
    pub(crate) async fn start(server: &TestServer) -> Self {
        Self::start_with(server, SESSION).await
    }

    /// Does the same as [`start`](Self::start), with this session timeout.
    pub(crate) async fn start_with(server: &TestServer, session_timeout: Duration) -> Self {
        for jar in JARS {
            assert!(Path::new(jar).is_file(), "{jar} does not exist: {MISSING}");
        }
        let permit = PROCESSES.acquire().await.unwrap();
        let mut java = Command::new("java");
        java.args(["-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", &JARS.join(":"), PROGRAM])
            .arg(format!("{}{}", server.connect_string(), server.root()))
            .args([&session_timeout.as_millis().to_string(), IDENTITY]);
        Self { peer: Peer::start(&mut java, MISSING).await, _permit: permit }
    }

    /// Creates one of Curator's recipes: a kind that `Peer.java` knows, with its arguments.
    pub(crate) async fn make(&self, recipe: &str) -> PeerRecipe<'_> {
        self.peer.make(recipe).await
    }

    /// Kills the process, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.peer.kill();
    }
}
