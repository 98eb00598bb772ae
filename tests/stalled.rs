use crate::soon;
use docent::Client;
use docent::client::ClientBuilder;
use std::sync::mpsc;
use std::thread;
use tokio::runtime;
use tokio::sync::oneshot;

/// A client in a process that stalls between two steps. The process is simulated by a thread that runs all of
/// the client's tasks.
#[derive(Debug)]
pub struct Stalled<T> {
    resume: mpsc::Sender<()>,
    outcome: oneshot::Receiver<T>,
}

impl<T: Send + 'static> Stalled<T> {
    /// Connects and performs `first`. Returns when the process stalls. The process performs `then` when it is
    /// [resumed](Self::resume).
    ///
    /// # Panics
    ///
    /// Panics if the process does not stall within the time limit.
    pub async fn after<S>(
        connecting: ClientBuilder,
        first: impl AsyncFnOnce(&Client) -> S + Send + 'static,
        then: impl AsyncFnOnce(S) -> T + Send + 'static,
    ) -> Self {
        let (stops, has_stopped) = oneshot::channel();
        let (resume, resumed) = mpsc::channel();
        let (done, outcome) = oneshot::channel();
        thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let client = connecting.connect().await.expect("a running server opens a session");
                let state = first(&client).await;
                stops.send(()).expect("the test waits");
                resumed.recv().expect("the test resumes the process");
                let result = then(state).await;
                client.close().await;
                let _ = done.send(result);
            });
        });
        soon(has_stopped).await.expect("the first step succeeds");
        Self { resume, outcome }
    }

    /// Resumes the process, and waits until its client is closed.
    ///
    /// # Panics
    ///
    /// Panics if the client is not closed within the time limit, or if the process panicked.
    pub async fn resume(self) -> T {
        self.resume.send(()).expect("the process is stalled");
        soon(self.outcome).await.expect("the second step succeeds")
    }
}
