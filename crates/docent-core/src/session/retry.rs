//! Requests that are repeated in one session until they are answered.
//!
//! For requests that are harmless when applied twice, from callers that wait as long as the session lives. An
//! operation with a deadline and a retry policy uses `Attempts` instead.

use super::{Cause, Lane, Outcome, Reply, SessionContext, SessionEnd};
use docent_proto::{Code, Request, Response};
use std::time::Duration;

/// Pause before a request is sent again that a server or the client's own queue did not accept.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// Cause that ends the repeats of a request, because another attempt would not help.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    Ended(SessionEnd),
    /// The request or its reply is too large.
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

/// Sends a request until it is answered. If the link was lost, sends the request again immediately, and it
/// waits in the queue for the next link. If a server or the client's own queue is too busy, sends the request
/// again after a [`PAUSE`]. A refusal is an answer.
///
/// Callers that do something else in between use the parts of this function: [`answered`] if the first
/// request was sent together with others, [`read_synced`] for a pair on one link, and `Outcome::answer` if
/// the caller chooses its own pauses.
///
/// # Cancel safety
/// This function is cancel safe. A request that was not written yet is withdrawn.
pub(crate) async fn send_until_answered(
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

/// Returns the answer of an `outcome`, or `None` if the caller is to send the request again, as
/// [`send_until_answered`] does. The pause before the next attempt has passed when this returns.
pub(crate) async fn answered(outcome: Outcome) -> Result<Option<Reply>, Stop> {
    match outcome.answer() {
        Ok(reply) => Ok(Some(reply)),
        Err(cause) => before_retry(cause).await.map(|()| None),
    }
}

/// Waits until a request that got no answer because of `cause` may be sent again.
pub(crate) async fn before_retry(cause: Cause) -> Result<(), Stop> {
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

/// Sends a `read` after a `sync` of `path` on the same link, so that the read sees all writes applied so far.
/// Sends both again while the link is lost. They use the cleanup lane, so that look-ups work even if the
/// queue of calls is full.
///
/// # Errors
/// The cause, if there is no answer for another reason than a lost link. The caller decides whether to
/// repeat.
///
/// # Cancel safety
/// This function is cancel safe.
pub(crate) async fn read_synced(
    context: &SessionContext,
    path: &str,
    read: &Request,
) -> Result<Result<Response, Code>, Cause> {
    loop {
        let sync = context.session.submit(sync(path), Lane::Cleanup);
        let read = context.session.submit(read.clone(), Lane::Cleanup);
        match (sync.await.answer(), read.await.answer()) {
            // The link was lost between the two requests, so together they prove nothing.
            (_, Err(Cause::LinkLost)) | (Err(Cause::LinkLost), _) => {}
            (_, Err(cause)) | (Err(cause), _) => return Err(cause),
            // Without the `sync` the read proves nothing.
            (Ok(Reply { result: Err(_), .. }), Ok(_)) => return Err(Cause::Deadline),
            (Ok(_), Ok(read)) => return Ok(read.result),
        }
    }
}

/// Returns the request that lets the server catch up with its leader, so that the next read sees all writes
/// applied so far.
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

    /// Returns whether the request is sent again, and the pause before that.
    async fn repeated(outcome: Outcome) -> (bool, Duration) {
        let start = Instant::now();
        (answered(outcome).await.unwrap().is_none(), start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_is_repeated_immediately_after_a_lost_link_and_later_on_a_busy_server() {
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
