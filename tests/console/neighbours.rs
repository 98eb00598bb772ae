//! Coordination as services write it with Curator and with kazoo.

use docent::{Client, CreateMode};
use docent_battery::TestServer;
use docent_battery::curator::{JARS, MISSING};
use docent_battery::packages::KAZOO;
use docent_battery::peer::{Peer, PeerRecipe};
use docent_tests::{SESSION, soon};
use std::path::Path;
use tokio::process::Command;

const SUITES: &str = env!("CARGO_MANIFEST_DIR");

/// A process with a Curator client and one with a kazoo client, below `/curator` and `/kazoo`.
pub(crate) struct Neighbours {
    curator: Peer,
    kazoo: Peer,
}

/// Recipes whose state a test changes.
pub(crate) struct Held<'a> {
    pub(crate) curators_lock: PeerRecipe<'a>,
    pub(crate) kazoos_lock: PeerRecipe<'a>,
}

impl Neighbours {
    /// Starts both processes. The folders are persistent, because both rely on parents that exist.
    pub(crate) async fn start(server: &TestServer, client: &Client) -> Self {
        for folder in ["/curator", "/kazoo"] {
            soon(client.create(folder, "", CreateMode::Persistent)).await.unwrap();
        }
        Self { curator: curator(server).await, kazoo: kazoo(server).await }
    }

    pub(crate) async fn fill(&self) -> Held<'_> {
        Held { curators_lock: self.fill_curator().await, kazoos_lock: self.fill_kazoo().await }
    }

    async fn fill_curator(&self) -> PeerRecipe<'_> {
        let make = async |what: &str| self.curator.make(what).await;
        let holder = make("mutex /curator/report").await;
        holder.done("acquire").await;
        drop(make("mutex /curator/report").await.start("acquire"));
        make("rw-lock /curator/prices").await.done("read").await;
        make("semaphore /curator/licences 2").await.done("acquire 2").await;
        let latch = make("latch /curator/leader host-1").await;
        latch.done("stand").await;
        latch.done("lead").await;
        make("latch /curator/leader host-2").await.done("stand").await;
        let queue = make("producer /curator/jobs").await;
        queue.done("put first-job").await;
        queue.done("put second-job").await;
        make("consumer /curator/jobs /curator/jobs-locks").await.done("take").await;
        let instance = "register orders theirs 10.0.0.9 8080 8443 1234567890123 DYNAMIC zone=a - true";
        make("discovery /curator/services").await.done(instance).await;
        make("member /curator/workers host-7 payload").await;
        make("count /curator/visits 258").await.done("get").await;
        holder
    }

    async fn fill_kazoo(&self) -> PeerRecipe<'_> {
        let make = async |what: &str| self.kazoo.make(what).await;
        let holder = make("lock /kazoo/report first").await;
        holder.done("acquire").await;
        drop(make("lock /kazoo/report second").await.start("acquire"));
        make("read-lock /kazoo/prices reader").await.done("acquire").await;
        drop(make("write-lock /kazoo/prices writer").await.start("acquire"));
        make("semaphore /kazoo/licences 2").await.done("try").await;
        make("party /kazoo/workers host-8").await.done("join").await;
        make("counter /kazoo/visits").await.done("add 4").await;
        holder
    }

    /// Kills the process with the Curator client, as a crash would.
    pub(crate) fn kill_curator(&mut self) {
        self.curator.kill();
    }
}

/// Starts the Curator client of the suite `interop`.
async fn curator(server: &TestServer) -> Peer {
    for jar in JARS {
        assert!(Path::new(jar).is_file(), "{jar} does not exist: {MISSING}");
    }
    let mut java = Command::new("java");
    java.args(["-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", &JARS.join(":")])
        .arg(format!("{SUITES}/interop/Peer.java"))
        .arg(format!("{}{}", server.connect_string(), server.root()))
        .args([&SESSION.as_millis().to_string(), "10.0.0.7"]);
    Peer::start(&mut java, MISSING).await
}

/// Starts the kazoo client of the suite `kazoo`.
async fn kazoo(server: &TestServer) -> Peer {
    let program = format!("{SUITES}/kazoo/peer.py");
    let mut python = KAZOO.command(Path::new(env!("CARGO_TARGET_TMPDIR")), &program).await.unwrap();
    python.arg(format!("{}{}", server.connect_string(), server.root())).arg(SESSION.as_millis().to_string());
    Peer::start(&mut python, KAZOO.missing()).await
}
