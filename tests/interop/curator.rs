//! A Curator client in a separate process.

use docent::Client;
use docent_battery::TestServer;
use docent_battery::curator::{JARS, MISSING};
use docent_battery::peer::{Peer, PeerRecipe};
use docent_tests::{SESSION, builder};
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/Peer.java");

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/neighbours");
const PAYLOADS: [&str; 2] =
    ["org/springframework/cloud/zookeeper/discovery", "org/apache/dubbo/registry/zookeeper"];

/// Data of both libraries' nodes in tests that need no other data.
pub(crate) const IDENTITY: &str = "10.0.0.7";

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
        let class_path = [JARS.join(":").as_str(), payload_classes().await].join(":");
        java.args(["-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", &class_path, PROGRAM])
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

/// Compiles the payload classes of other frameworks once, and returns the folder of the results.
async fn payload_classes() -> &'static str {
    static CLASSES: OnceCell<String> = OnceCell::const_new();
    CLASSES
        .get_or_init(|| async {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("java-payloads");
            std::fs::create_dir_all(&folder).unwrap();
            let sources = PAYLOADS.map(|source| format!("{SOURCES}/{source}/ZookeeperInstance.java"));
            let mut javac = Command::new("javac");
            let output = javac.arg("-d").arg(&folder).args(sources).kill_on_drop(true).output().await;
            let output = output.unwrap_or_else(|error| panic!("cannot run javac ({error}): {MISSING}"));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            folder.display().to_string()
        })
        .await
}
