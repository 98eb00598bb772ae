//! Processes of other people's clients, and their sessions.

use docent_battery::{Proxy, TestServer, kazoo};
use docent_tests::SESSION;
use docent_tests::peer::{Peer, Theirs};
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

/// A Java process takes 250 MB: there are two at most besides the server.
static JAVA_PROCESSES: Semaphore = Semaphore::const_new(2);

/// Client that somebody else wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// kazoo from PyPI.
    Kazoo,
    /// ZooKeeper's own, of Debian.
    Java,
    /// The one in C that comes with ZooKeeper, of Debian.
    C,
}

impl Family {
    /// Words for a machine without it.
    fn missing(self) -> &'static str {
        match self {
            Self::Kazoo => kazoo::MISSING,
            Self::Java => "install libzookeeper-java, libcurator-recipes-java and default-jdk-headless",
            Self::C => "install libzookeeper-mt-dev and a C compiler",
        }
    }

    async fn program(self) -> Command {
        match self {
            Self::Kazoo => kazoo::python(Path::new(BUILT), &format!("{SOURCES}/client.py")).await.unwrap(),
            Self::Java => java("Client").await,
            Self::C => Command::new(c_program().await),
        }
    }
}

/// A process with sessions of one client, behind a proxy of its own.
///
/// # On drop
/// The process is killed.
pub(crate) struct Other<'a> {
    peer: Peer,
    server: &'a TestServer,
    proxy: Proxy,
    _permit: Option<SemaphorePermit<'static>>,
}

impl<'a> Other<'a> {
    /// Starts it.
    pub(crate) async fn start(family: Family, server: &'a TestServer) -> Self {
        let permit = match family {
            Family::Java => Some(JAVA_PROCESSES.acquire().await.unwrap()),
            Family::Kazoo | Family::C => None,
        };
        let peer = Peer::start(&mut family.program().await, family.missing()).await;
        Self { peer, server, proxy: server.proxy().await, _permit: permit }
    }

    /// The proxy that its links go through.
    pub(crate) fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Opens a session whose root is the test's.
    pub(crate) async fn session(&self) -> Theirs<'_> {
        self.session_with(SESSION).await
    }

    /// As [`session`](Self::session), with this timeout.
    pub(crate) async fn session_with(&self, timeout: Duration) -> Theirs<'_> {
        let (address, root) = (self.proxy.connect_string(), self.server.root());
        self.peer.make(&format!("session {address}{root} {}", timeout.as_millis())).await
    }

    /// Ends a session as expiry does.
    pub(crate) async fn expire(&self, session: &Theirs<'_>) {
        let id = session.done("id").await.remove(0);
        self.server.expire(id.parse().unwrap()).await.unwrap();
    }

    /// Ends the process as a crash does.
    pub(crate) fn kill(&mut self) {
        self.peer.kill();
    }
}

/// A Curator client in a process of its own, whose program makes things besides sessions.
pub(crate) struct Curator {
    peer: Peer,
    _permit: SemaphorePermit<'static>,
}

impl Curator {
    /// Starts it and waits until it is connected.
    pub(crate) async fn start(server: &TestServer) -> Self {
        let permit = JAVA_PROCESSES.acquire().await.unwrap();
        let mut java = java("Contention").await;
        java.arg(format!("{}{}", server.connect_string(), server.root()));
        Self { peer: Peer::start(&mut java, Family::Java.missing()).await, _permit: permit }
    }

    /// Makes one of its recipes: a kind that `Contention.java` knows, with its arguments.
    pub(crate) async fn make(&self, what: &str) -> Theirs<'_> {
        self.peer.make(what).await
    }
}

/// A JVM that runs a class of this folder, or one of the libraries.
pub(crate) async fn java(class: &str) -> Command {
    static CLASSES: OnceCell<PathBuf> = OnceCell::const_new();
    let classes = CLASSES.get_or_init(compiled).await.display().to_string();
    let mut java = Command::new("java");
    let class_path = [&JARS[..], &[&classes]].concat().join(":");
    java.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-cp", &class_path, class]);
    java
}

/// Compiles the Java programs, once: a JVM that is given a source compiles it at each start.
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

/// A folder of this process for what it builds.
fn built(name: &str) -> PathBuf {
    let folder = Path::new(BUILT).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

async fn run(program: &mut Command, family: Family) {
    let output = program.kill_on_drop(true).output().await;
    let output = output.unwrap_or_else(|error| panic!("{program:?} ({error}): {}", family.missing()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?}: {said}{}", family.missing());
}
