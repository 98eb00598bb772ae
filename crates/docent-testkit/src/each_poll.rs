use crate::FailedRun;
use crate::each_request::LIMIT;
use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio::time::timeout;

/// Maximum number of polls of a case.
const MOST: usize = 1_000;

/// Polls `future` each time the task is polled, at most `polls` times. Returns `None` if the future has not
/// completed by that time.
pub async fn poll_times<F: Future>(polls: usize, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut remaining = polls;
    poll_fn(|cx| {
        if remaining == 0 {
            return Poll::Ready(None);
        }
        remaining -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if remaining == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Polls `future` each time the task is polled, at most `polls` times, and then drops it. Returns `None` if
/// it has not completed. Await this function on its own, because every poll of the task counts.
pub async fn abandon_at<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    poll_times(polls, pin!(future)).await
}

/// Drops a future after each poll that leaves it pending, to test what the future leaves behind. Returns the
/// number of those polls.
///
/// `case` is called with the number of polls to allow, starting at 1. It passes its future and this number to
/// [`abandon_at`], checks what the dropped future has left behind, and returns whether the future completed.
/// Each call allows one more poll, until the future completes.
///
/// # Errors
/// [`FailedRun`] with the number of polls if `case` returns an error or does not finish within 60 s, for
/// example because a ticket remains. Also if the future has not completed after 1,000 polls.
///
/// # Cancel safety
/// This function is as cancel safe as `case`.
///
/// # Examples
/// An acquire that is dropped leaves no ticket behind:
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use docent_core::{Client, Error};
/// # use docent_locks::Mutex;
/// # use docent_server::Server;
/// # use docent_testkit::{abandon_at, drop_at_each_poll, in_line};
/// # use std::time::Duration;
/// let server = Server::start().await?;
/// let client = Client::connect(server.connect_string()).await?;
/// let mutex = Mutex::new(&client, "/locks/report")?;
///
/// let polls = drop_at_each_poll(async |polls| {
///     let done = abandon_at(polls, mutex.acquire()).await.is_some(); // the guard is dropped, too
///     in_line(&client, "/locks/report", 0, Duration::from_secs(5)).await.expect("nothing is left");
///     Ok::<_, Error>(done)
/// })
/// .await?;
/// assert!(polls > 1);
/// # Ok(()) }
/// ```
pub async fn drop_at_each_poll<E: Into<Box<dyn Error + Send + Sync>>>(
    case: impl AsyncFn(usize) -> Result<bool, E>,
) -> Result<usize, FailedRun> {
    for polls in 1..=MOST {
        let failed = |source| FailedRun { run: format!("dropped after {polls} polls"), source };
        let done = timeout(LIMIT, case(polls)).await;
        let done = done.map_err(|_| failed(format!("the case did not finish within {LIMIT:?}").into()))?;
        if done.map_err(|error| failed(error.into()))? {
            return Ok(polls - 1);
        }
        // A case that never waits would otherwise keep other tasks from running.
        tokio::task::yield_now().await;
    }
    Err(FailedRun { run: "the case".to_owned(), source: format!("not completed after {MOST} polls").into() })
}
