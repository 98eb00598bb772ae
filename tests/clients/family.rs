//! Processes of third-party clients, and their sessions.

use docent_battery::packages::KAZOO;
use docent_battery::peer::{Peer, PeerRecipe};
use docent_battery::{Proxy, TestServer};
use docent_tests::SESSION;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
const BUILT: &str = env!("CARGO_TARGET_TMPDIR");

const JARS: [&str; 6] = [
    "/usr/share/java/zookeeper.jar",
    "/usr/share/java/zookeeper-jute.jar",
    "/usr/share/java/curator-client.jar",
    "/usr/share/java/curator-framework.jar",
    "/usr/share/java/curator-recipes.jar",
    "/usr/share/java/slf4j-nop.jar",
];

/// Limits the Java processes to two besides the server, because each takes 250 MB.
static JAVA_PROCESSES: Semaphore = Semaphore::const_new(2);

/// A third-party client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// kazoo from PyPI.
    Kazoo,
    /// ZooKeeper's own Java client, from Debian.
    Java,
    /// ZooKeeper's C client, from Debian.
    C,
}

impl Family {
    /// Returns a hint for a machine without this client.
    fn missing(self) -> &'static str {
        match self {
            Self::Kazoo => KAZOO.missing(),
            Self::Java => "install libzookeeper-java, libcurator-recipes-java and default-jdk-headless",
            Self::C => "install libzookeeper-mt-dev and a C compiler",
        }
    }

    async fn program(self) -> Command {
        match self {
            Self::Kazoo => KAZOO.command(Path::new(BUILT), &format!("{SOURCES}/client.py")).await.unwrap(),
            Self::Java => java("Client").await,
            Self::C => Command::new(c_program().await),
        }
    }
}

/// A process with sessions of one client, behind its own proxy.
///
/// # On drop
///
/// The process is killed.
pub(crate) struct Other<'a> {
    peer: Peer,
    server: &'a TestServer,
    proxy: Proxy,
    _permit: Option<SemaphorePermit<'static>>,
}

impl<'a> Other<'a> {
    /// Starts the process.
    pub(crate) async fn start(family: Family, server: &'a TestServer) -> Self {
        let permit = match family {
            Family::Java => Some(JAVA_PROCESSES.acquire().await.unwrap()),
            Family::Kazoo | Family::C => None,
        };
        let peer = Peer::start(&mut family.program().await, family.missing()).await;
        Self { peer, server, proxy: server.proxy().await, _permit: permit }
    }

    /// The proxy of its links.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Opens a session with the test's path as root.
    pub(crate) async fn session(&self) -> PeerRecipe<'_> {
        self.session_with(SESSION).await
    }

    /// Does the same as [`session`](Self::session), with this timeout.
    pub(crate) async fn session_with(&self, timeout: Duration) -> PeerRecipe<'_> {
        let (address, root) = (self.proxy.connect_string(), self.server.root());
        self.peer.make(&format!("session {address}{root} {}", timeout.as_millis())).await
    }

    /// Ends a session, as expiry does.
    pub(crate) async fn expire(&self, session: &PeerRecipe<'_>) {
        let id = session.done("id").await.remove(0);
        self.server.expire(id.parse().unwrap()).await.unwrap();
    }

    /// Kills the process, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.peer.kill();
    }
}

/// A Curator client in a separate process, whose program creates Curator's recipes and caches.
pub(crate) struct Curator {
    peer: Peer,
    _permit: SemaphorePermit<'static>,
}

impl Curator {
    /// Starts the process and waits until its client is connected.
    pub(crate) async fn start(server: &TestServer) -> Self {
        let permit = JAVA_PROCESSES.acquire().await.unwrap();
        let mut java = java("Contention").await;
        java.arg(format!("{}{}", server.connect_string(), server.root()));
        Self { peer: Peer::start(&mut java, Family::Java.missing()).await, _permit: permit }
    }

    /// Creates one of Curator's objects: a kind that `Contention.java` knows, with its arguments.
    pub(crate) async fn make(&self, what: &str) -> PeerRecipe<'_> {
        self.peer.make(what).await
    }
}

/// Returns a JVM that runs a class of this folder, or of one of the libraries.
pub(crate) async fn java(class: &str) -> Command {
    static CLASSES: OnceCell<PathBuf> = OnceCell::const_new();
    let classes = CLASSES.get_or_init(compiled).await.display().to_string();
    let mut java = Command::new("java");
    let class_path = [&JARS[..], &[&classes]].concat().join(":");
    java.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-cp", &class_path, class]);
    java
}

/// Compiles the Java programs once. Given a source file, a JVM would compile it at each start.
async fn compiled() -> PathBuf {
    for jar in JARS {
        assert!(Path::new(jar).is_file(), "no {jar}: {}", Family::Java.missing());
    }
    let folder = built("java-clients");
    let mut javac = Command::new("javac");
    javac.args(["-cp", &JARS.join(":"), "-d"]).arg(&folder);
    javac.args(["Client", "Contention"].map(|class| format!("{SOURCES}/{class}.java")));
    run(&mut javac, Family::Java).await;
    folder
}

async fn c_program() -> &'static Path {
    static PROGRAM: OnceCell<PathBuf> = OnceCell::const_new();
    PROGRAM
        .get_or_init(|| async {
            let program = built("c-client").join("client");
            let mut cc = Command::new("cc");
            cc.args(["-Wall", "-O1", "-o"]).arg(&program).arg(format!("{SOURCES}/client.c"));
            run(cc.args(["-lzookeeper_mt", "-lpthread"]), Family::C).await;
            program
        })
        .await
}

/// Returns a folder for the files that this process builds.
fn built(name: &str) -> PathBuf {
    let folder = Path::new(BUILT).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn run(program: &mut Command, family: Family) {
    let output = program.kill_on_drop(true).output().await;
    let output = output.unwrap_or_else(|error| panic!("{program:?} ({error}): {}", family.missing()));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?}: {stderr}{}", family.missing());
}
