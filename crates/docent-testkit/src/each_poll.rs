use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// Polls `future` up to `polls` times, each when it asked for it; `None` when it was not done after that.
pub async fn poll_times<F: Future>(polls: usize, mut future: Pin<&mut F>) -> Option<F::Output> {
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Polls `future` up to `polls` times, each when it asked for it, and drops it then. Returns `None` if it was
/// not done.
pub async fn abandon_at<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    poll_times(polls, pin!(future)).await
}

/// Drops a future at each point where it waits. Returns the number of these points.
///
/// `case` gets the number of polls that it is to allow, from 1 on. It passes its future and this number to
/// [`abandon_at`], checks what the dropped future has left, and returns whether the future was done. The
/// next call allows one poll more, until the future is done.
///
/// # Errors
/// The first error of `case`.
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
/// use docent::testkit::{abandon_at, drop_at_each_poll, in_line};
/// use docent::{Client, Error, Mutex, server::Server};
/// use std::time::Duration;
///
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
pub async fn drop_at_each_poll<E>(case: impl AsyncFn(usize) -> Result<bool, E>) -> Result<usize, E> {
    let mut polls = 1;
    while !case(polls).await? {
        polls += 1;
    }
    Ok(polls - 1)
}
