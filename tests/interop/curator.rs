//! A Curator client in a process of its own, and its orders.

use docent::Client;
use docent_testkit::TestServer;
use docent_tests::{SESSION, builder, soon};
use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};

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

/// A process with a Curator client below the root of a test. `Peer.java` says what goes over its pipes.
///
/// # On drop
/// The process is killed. It also ends by itself when the test's process does.
pub(crate) struct Curator {
    process: Child,
    lines: mpsc::UnboundedSender<String>,
    told: Arc<Told>,
    things: AtomicU64,
    _permit: SemaphorePermit<'static>,
}

/// Orders that were given and are not answered yet.
#[derive(Default)]
struct Told {
    count: AtomicU64,
    unanswered: Mutex<HashMap<u64, oneshot::Sender<String>>>,
}

/// One of Curator's recipes at work.
pub(crate) struct Theirs<'a> {
    curator: &'a Curator,
    name: u64,
}

/// Order that Curator carries out.
pub(crate) struct Doing {
    what: String,
    answer: oneshot::Receiver<String>,
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
        let mut process = Command::new("java")
            .args(["-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", &JARS.join(":"), PROGRAM])
            .arg(format!("{}{}", server.connect_string(), server.root()))
            .args([&session_timeout.as_millis().to_string(), IDENTITY])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("no java ({error}): {MISSING}"));
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut first = String::new();
        soon(output.read_line(&mut first)).await.unwrap();
        if first != "ready\n" {
            panic!("Curator did not start: {first}{}{MISSING}", last_words(&mut process).await);
        }
        let told = Arc::new(Told::default());
        let (lines, to_write) = mpsc::unbounded_channel();
        tokio::spawn(write(process.stdin.take().unwrap(), to_write));
        tokio::spawn(answer(output, told.clone()));
        Self { process, lines, told, things: AtomicU64::new(0), _permit: permit }
    }

    /// Makes one of its recipes: a kind that `Peer.java` knows, with its arguments.
    pub(crate) async fn make(&self, what: &str) -> Theirs<'_> {
        let theirs = Theirs { curator: self, name: self.things.fetch_add(1, Ordering::Relaxed) };
        theirs.done(&format!("make {what}")).await;
        theirs
    }

    /// Ends the process as a crash does.
    pub(crate) fn kill(&mut self) {
        self.process.start_kill().unwrap();
    }
}

impl Theirs<'_> {
    /// Tells it to do something, now.
    pub(crate) fn tell(&self, what: &str) -> Doing {
        let told = &self.curator.told;
        let number = told.count.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        told.unanswered.lock().unwrap().insert(number, sender);
        self.curator.lines.send(format!("{number} {} {what}\n", self.name)).unwrap();
        Doing { what: what.to_owned(), answer }
    }

    /// Has it do something, and returns what came of that.
    pub(crate) async fn done(&self, what: &str) -> Vec<String> {
        self.tell(what).done().await
    }

    /// Has it try something in vain.
    pub(crate) async fn refused(&self, what: &str) {
        self.tell(what).refused().await;
    }
}

impl Doing {
    pub(crate) fn is_finished(&self) -> bool {
        !self.answer.is_empty()
    }

    pub(crate) async fn done(self) -> Vec<String> {
        let (what, answer) = self.answer().await;
        let mut words = answer.split(' ').map(str::to_owned);
        assert_eq!(words.next().unwrap(), "ok", "{what}: {answer}");
        words.collect()
    }

    pub(crate) async fn refused(self) {
        let (what, answer) = self.answer().await;
        assert_eq!(answer, "no", "{what}");
    }

    async fn answer(self) -> (String, String) {
        let answer = soon(self.answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{}: Curator's process has ended", self.what));
        (self.what, answer)
    }
}

async fn write(mut input: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(output: BufReader<ChildStdout>, told: Arc<Told>) {
    let mut lines = output.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let (number, answer) = line.split_once(' ').unwrap();
        let sender = told.unanswered.lock().unwrap().remove(&number.parse().unwrap()).unwrap();
        // Nobody may wait for it any more.
        let _ = sender.send(answer.to_owned());
    }
    told.unanswered.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Last output of a process that is of no use.
async fn last_words(process: &mut Child) -> String {
    process.start_kill().unwrap();
    let mut text = String::new();
    process.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
    text
}
