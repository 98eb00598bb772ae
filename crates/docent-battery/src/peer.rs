//! A third-party client in a separate process, and the orders it carries out.

use std::collections::HashMap;
use std::future::Future;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};

/// A process with a third-party client that carries out orders, one per line.
///
/// The process prints `ready` when it is connected. Each line of its input is `NUMBER THING VERB ARGUMENTS`.
/// When the order is done, the process answers `NUMBER ok VALUES`, `NUMBER no`, or `NUMBER error WHAT`. The
/// verb `make KIND ARGUMENTS` creates a thing.
///
/// # On drop
///
/// The process is killed. It also exits when the test's process exits.
pub struct Peer {
    process: Child,
    lines: mpsc::UnboundedSender<String>,
    orders: Arc<Orders>,
    things: AtomicU64,
}

/// Orders that were sent and are not answered yet.
#[derive(Default)]
struct Orders {
    count: AtomicU64,
    unanswered: Mutex<HashMap<u64, oneshot::Sender<String>>>,
}

/// A recipe of a [`Peer`].
pub struct PeerRecipe<'a> {
    peer: &'a Peer,
    name: u64,
}

/// An order in progress.
pub struct Doing {
    what: String,
    answer: oneshot::Receiver<String>,
}

impl Peer {
    /// Starts the program and waits until it is connected.
    ///
    /// # Panics
    ///
    /// Panics if the program does not start, with its last output and with `missing`, which names what to
    /// install.
    pub async fn start(program: &mut Command, missing: &str) -> Self {
        let line = format!("{:?}", program.as_std());
        let mut process = program
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot run {line} ({error}): {missing}"));
        let input = process.stdin.take().expect("the program's input is piped");
        let mut output = BufReader::new(process.stdout.take().expect("the program's output is piped"));
        let mut first = String::new();
        answered(output.read_line(&mut first)).await.expect("the program's output can be read");
        if first != "ready\n" {
            panic!("{line} did not start: {first}{}{missing}", last_words(&mut process).await);
        }
        let orders = Arc::new(Orders::default());
        let (lines, to_write) = mpsc::unbounded_channel();
        tokio::spawn(write(input, to_write));
        tokio::spawn(answer(output, Arc::clone(&orders)));
        Self { process, lines, orders, things: AtomicU64::new(0) }
    }

    /// Creates one of the peer's recipes: a kind that its program knows, with its arguments.
    ///
    /// # Panics
    ///
    /// Panics if the recipe cannot be created.
    pub async fn make(&self, what: &str) -> PeerRecipe<'_> {
        let recipe = PeerRecipe { peer: self, name: self.things.fetch_add(1, Ordering::Relaxed) };
        recipe.done(&format!("make {what}")).await;
        recipe
    }

    /// Kills the process, as a crash would.
    ///
    /// # Panics
    ///
    /// Panics if the process has exited.
    pub fn kill(&mut self) {
        self.process.start_kill().expect("the process has not exited");
    }
}

impl PeerRecipe<'_> {
    /// Sends an order immediately.
    ///
    /// # Panics
    ///
    /// Panics if the process has exited.
    pub fn start(&self, what: &str) -> Doing {
        let orders = &self.peer.orders;
        let number = orders.count.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        orders.unanswered().insert(number, sender);
        self.peer.lines.send(format!("{number} {} {what}\n", self.name)).expect("the process is running");
        Doing { what: what.to_owned(), answer }
    }

    /// Sends an order, and returns the values of its answer.
    ///
    /// # Panics
    ///
    /// Panics if the order fails.
    pub async fn done(&self, what: &str) -> Vec<String> {
        self.start(what).done().await
    }

    /// Sends an order that must be answered with `no`.
    ///
    /// # Panics
    ///
    /// Panics if the answer is different.
    pub async fn refused(&self, what: &str) {
        self.start(what).refused().await;
    }
}

impl Doing {
    /// Returns true if the order was answered.
    pub fn is_finished(&self) -> bool {
        !self.answer.is_empty()
    }

    /// Waits until the order is done, and returns the values of its answer.
    ///
    /// # Panics
    ///
    /// Panics if the order fails.
    pub async fn done(self) -> Vec<String> {
        let (what, answer) = self.answer().await;
        let mut words = answer.split(' ').map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some("ok"), "{what}: {answer}");
        words.collect()
    }

    /// Waits until the order is answered with `no`.
    ///
    /// # Panics
    ///
    /// Panics if the answer is different.
    pub async fn refused(self) {
        let (what, answer) = self.answer().await;
        assert_eq!(answer, "no", "{what}");
    }

    /// Waits until the order has failed, and returns the error.
    ///
    /// # Panics
    ///
    /// Panics if the order does not fail.
    pub async fn failed(self) -> String {
        let (what, answer) = self.answer().await;
        let error = answer.strip_prefix("error ").map(str::to_owned);
        error.unwrap_or_else(|| panic!("{what}: {answer}"))
    }

    async fn answer(self) -> (String, String) {
        let answer = answered(self.answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{}: the process has exited", self.what));
        (self.what, answer)
    }
}

impl Orders {
    fn unanswered(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<String>>> {
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(mut input: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        if input.write_all(line.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn answer(output: BufReader<ChildStdout>, orders: Arc<Orders>) {
    let mut lines = output.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some((number, answer)) = line.split_once(' ') else { continue };
        let sender = number.parse().ok().and_then(|number| orders.unanswered().remove(&number));
        // The receiver may have been dropped.
        let _ = sender.map(|sender| sender.send(answer.to_owned()));
    }
    orders.unanswered().clear();
}

/// Kills a process that did not start, and returns its last output.
async fn last_words(process: &mut Child) -> String {
    // The process may have exited on its own.
    let _ = process.start_kill();
    let mut text = String::new();
    if let Some(errors) = &mut process.stderr {
        let _ = errors.read_to_string(&mut text).await;
    }
    text
}

/// Waits for another program, which may start slowly and pause between its attempts.
async fn answered<F: Future>(answer: F) -> F::Output {
    const PATIENCE: Duration = Duration::from_secs(180);
    tokio::time::timeout(PATIENCE, answer).await.expect("the other program answers within the time limit")
}
