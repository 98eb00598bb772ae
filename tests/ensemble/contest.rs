//! Repeated contention for something exclusive.

use docent::guard::Guard;
use docent_tests::soon;
use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const HOLD: Duration = Duration::from_millis(10);

/// Contenders for something exclusive.
pub(crate) struct Contest<G> {
    name: String,
    turns: Arc<Turns<G>>,
    stop: CancellationToken,
    contenders: Vec<JoinHandle<()>>,
}

/// Turns taken so far, with the last guard.
struct Turns<G> {
    count: watch::Sender<usize>,
    last: Mutex<Weak<G>>,
    wrong: Mutex<Vec<String>>,
}

impl<G: Guard + Debug + 'static> Contest<G> {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        let turns = Turns { count: watch::Sender::new(0), last: Mutex::default(), wrong: Mutex::default() };
        let (turns, stop) = (Arc::new(turns), CancellationToken::new());
        Self { name: name.into(), turns, stop, contenders: Vec::new() }
    }

    /// Adds a contender that calls `acquire`, holds for a moment, and releases.
    pub(crate) fn join<F, E>(&mut self, acquire: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = Result<G, E>> + Send + 'static,
        E: Display + Send,
    {
        let (turns, stop) = (Arc::clone(&self.turns), self.stop.clone());
        self.contenders.push(tokio::spawn(async move {
            // A waiting contender gives up its place when it is stopped.
            while let Some(acquired) = stop.run_until_cancelled(acquire()).await {
                match acquired {
                    Ok(guard) => turns.take(guard).await,
                    Err(error) => turns.wrong(format!("acquire failed: {error}")),
                }
            }
        }));
    }

    /// Waits until two more turns were taken. Returns a message if that takes too long.
    pub(crate) async fn is_blocked(&self, limit: Duration) -> Option<String> {
        let mut count = self.turns.count.subscribe();
        let before = *count.borrow();
        let working = count.wait_for(|count| *count >= before + 2);
        let late = tokio::time::timeout(limit, working).await.is_err();
        late.then(|| format!("{} is blocked", self.name))
    }

    /// Ends the contest, and returns the violations.
    pub(crate) async fn finish(self) -> Vec<String> {
        self.stop.cancel();
        for contender in self.contenders {
            soon(contender).await.unwrap();
        }
        let wrong = std::mem::take(&mut *self.turns.wrong.lock().unwrap());
        wrong.into_iter().map(|wrong| format!("{}: {wrong}", self.name)).collect()
    }
}

impl<G: Guard + Debug + 'static> Turns<G> {
    /// Checks at the moment of the grant that no other contender holds.
    async fn take(&self, guard: G) {
        let guard = Arc::new(guard);
        let before = std::mem::replace(&mut *self.last.lock().unwrap(), Arc::downgrade(&guard));
        if let Some(before) = before.upgrade() {
            if before.is_held() && guard.is_held() {
                self.wrong("two contenders hold".to_owned());
            }
            if before.fence() >= guard.fence() {
                self.wrong(format!("fence {:?} followed {:?}", guard.fence(), before.fence()));
            }
        }
        self.count.send_modify(|count| *count += 1);
        tokio::time::sleep(HOLD).await;
        // `None` while another contender uses the guard. Its drop then deletes the node.
        if let Some(guard) = Arc::into_inner(guard) {
            // The guard may be lost, or the outcome of the release unknown.
            let _ = guard.release().await;
        }
    }

    fn wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }
}
