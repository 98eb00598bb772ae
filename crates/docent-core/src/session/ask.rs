//! Requests that are repeated in one session until there is an answer.
//!
//! For requests that do no harm when they are applied twice, of callers that wait as long as the session
//! lives. An operation with a deadline and a retry policy goes by `Attempts` instead.

use super::{Cause, Lane, Outcome, Reply, SessionContext, SessionEnd};
use docent_proto::{Code, Request, Response};
use std::time::Duration;

/// Pause before a request is sent again that a server or the own queue did not take.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// Cause that ends the repeats of a request: another one would not help.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    Ended(SessionEnd),
    /// The request, or its reply.
    TooLarge {
        size: usize,
        limit: usize,
    },
}

impl From<Stop> for Cause {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Ended(end) => Self::Ended(end),
            Stop::TooLarge { size, limit } => Self::TooLarge { size, limit },
        }
    }
}

/// Sends a request until it is answered: again at once when the link was lost, where it waits for the next
/// one, and after a [`PAUSE`] when a server or the own queue is too busy. A refusal is an answer.
///
/// Callers that must do something else in between use its parts: [`answered`] where the first request went
/// out together with others, [`ask_synced`] for a pair on one link, and `Outcome::answer` where the pauses
/// are their own.
///
/// # Cancel safety
/// Cancel safe: a request that was not written yet is withdrawn.
pub(crate) async fn ask(
    context: &SessionContext,
    lane: Lane,
    request: impl Fn() -> Request,
) -> Result<Reply, Stop> {
    loop {
        if let Some(reply) = answered(context.session.submit(request(), lane).await).await? {
            return Ok(reply);
        }
    }
}

/// Returns the answer of an `outcome`, or `None` when the caller shall send the request again, as [`ask`]
/// does. The pause before that is over when this returns.
pub(crate) async fn answered(outcome: Outcome) -> Result<Option<Reply>, Stop> {
    match outcome.answer() {
        Ok(reply) => Ok(Some(reply)),
        Err(cause) => before_repeat(cause).await.map(|()| None),
    }
}

/// Waits until a request that has no answer for `cause` may be sent again.
pub(crate) async fn before_repeat(cause: Cause) -> Result<(), Stop> {
    match cause {
        Cause::LinkLost => Ok(()),
        Cause::QueueFull | Cause::Deadline | Cause::TooManyEphemerals { .. } => {
            tokio::time::sleep(PAUSE).await;
            Ok(())
        }
        Cause::Ended(end) => Err(Stop::Ended(end)),
        Cause::TooLarge { size, limit } => Err(Stop::TooLarge { size, limit }),
    }
}

/// Sends a `read` after a `sync` of `path` on the same link, so that it sees all writes applied by now, and
/// again while the link is lost. They go in the lane of cleanups, which look things up even where the queue
/// of calls is full.
///
/// # Errors
/// When there is no answer for another cause than the link; whether to repeat it is the caller's decision.
///
/// # Cancel safety
/// Cancel safe.
pub(crate) async fn ask_synced(
    context: &SessionContext,
    path: &str,
    read: &Request,
) -> Result<Result<Response, Code>, Cause> {
    loop {
        let sync = context.session.submit(sync(path), Lane::Cleanup);
        let read = context.session.submit(read.clone(), Lane::Cleanup);
        match (sync.await.answer(), read.await.answer()) {
            // The link was lost between the two: together they prove nothing.
            (_, Err(Cause::LinkLost)) | (Err(Cause::LinkLost), _) => {}
            (_, Err(cause)) | (Err(cause), _) => return Err(cause),
            // Without the `sync` the read proves nothing.
            (Ok(Reply { result: Err(_), .. }), Ok(_)) => return Err(Cause::Deadline),
            (Ok(_), Ok(read)) => return Ok(read.result),
        }
    }
}

/// Lets the server catch up with its leader, so that the read after it sees all writes applied by now.
fn sync(path: &str) -> Request {
    if planted!(NoSyncBeforeLookup) {
        return Request::Exists { path: "/".to_owned(), watch: false };
    }
    Request::Sync { path: path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn reply(code: Code) -> Outcome {
        Outcome::Reply(Reply { result: Err(code), zxid: 1, watch: None, watches: Vec::new() })
    }

    /// True when the request is sent again, and the pause before that.
    async fn repeated(outcome: Outcome) -> (bool, Duration) {
        let start = Instant::now();
        (answered(outcome).await.unwrap().is_none(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_link_is_repeated_at_once_and_a_busy_server_after_a_pause() {
        for outcome in [Outcome::NotSent(Cause::LinkLost), Outcome::Unknown(Cause::LinkLost)] {
            assert_eq!(repeated(outcome).await, (true, Duration::ZERO));
        }
        for outcome in [
            reply(Code::THROTTLED),
            Outcome::NotSent(Cause::QueueFull),
            Outcome::NotSent(Cause::TooManyEphemerals { bytes: 2, limit: 1 }),
            Outcome::Unknown(Cause::Deadline),
        ] {
            let pause = repeated(outcome).await;
            assert!(pause.0 && pause.1 >= PAUSE, "{pause:?}");
        }
        assert_eq!(repeated(reply(Code::NO_NODE)).await, (false, Duration::ZERO), "a refusal is an answer");
    }

    #[tokio::test]
    async fn the_end_of_the_session_stops_the_repeats() {
        for outcome in [reply(Code::SESSION_EXPIRED), Outcome::Unknown(Cause::Ended(SessionEnd::Expired))] {
            assert!(matches!(answered(outcome).await, Err(Stop::Ended(SessionEnd::Expired))));
        }
        let outcome = Outcome::Unknown(Cause::TooLarge { size: 2, limit: 1 });
        assert!(matches!(answered(outcome).await, Err(Stop::TooLarge { size: 2, limit: 1 })));
    }
}
