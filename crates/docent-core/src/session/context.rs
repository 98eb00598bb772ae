//! One session of a client, and requests that are repeated in it until they are answered.

use super::lease::Lease;
use super::{Cause, Lane, Outcome, Reply, Session, SessionEnd};
use crate::time::Clock;
use docent_proto::Request;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// One session of a client, with its lease and the clock that measures it.
pub(crate) struct SessionContext {
    /// Label of the client.
    pub(crate) client: Arc<str>,
    /// Number of the session among the client's sessions: 1, 2, 3 …
    pub(crate) number: u64,
    pub(crate) session: Arc<dyn Session>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Largest request in bytes that the servers accept.
    pub(crate) max_request: usize,
    pub(crate) ids: Ids,
}

impl SessionContext {
    pub(crate) fn ended(&self) -> Option<SessionEnd> {
        self.lease.ended()
    }

    /// Returns an id that no other session has and that this session has not used before.
    pub(crate) fn fresh_id(&self) -> Uuid {
        self.ids.fresh(self.session.id())
    }

    /// Returns the number of times that the link was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.session.link().borrow().losses
    }
}

impl fmt::Debug for SessionContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionContext")
            .field("number", &self.number)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// Number of bits of an id that form the counter: enough for a million ids per second for twelve days.
const COUNTER_BITS: u32 = 40;

/// The four bits of the upper half that hold the version of a UUID.
const VERSION: u64 = 0xf << VERSION_SHIFT;
const VERSION_SHIFT: u32 = 12;

/// Version 4: a random UUID.
const RANDOM: u64 = 4;

/// Position of the two highest bits of the lower half, which hold the variant of a UUID.
const VARIANT_SHIFT: u32 = 62;

/// Ids of one session, in the form of random UUIDs.
///
/// An id consists of the session's number, which the servers assign to no other session, and a counter. Two
/// live sessions therefore never produce the same id, whatever their processes share. Forks of one process,
/// and machines resumed from one snapshot, have the same memory and may have the same source of random
/// numbers. Only the first id asks the system for random bytes.
#[derive(Debug)]
pub(crate) struct Ids {
    /// Halves of a number drawn for this session. The upper half replaces the session's number until that
    /// number is known.
    random: (u64, u64),
    count: AtomicU64,
}

impl Default for Ids {
    fn default() -> Self {
        if planted!(IdsOfTheProcess) {
            // State that processes forked after the draw share.
            return Self { random: (1, 1), count: AtomicU64::new(0) };
        }
        Self { random: Uuid::new_v4().as_u64_pair(), count: AtomicU64::new(0) }
    }
}

impl Ids {
    /// Returns a new id of the session `session_id`; 0 means that the session has not been attached yet.
    pub(crate) fn fresh(&self, session_id: i64) -> Uuid {
        let (upper, lower) = self.random;
        let session = match session_id {
            0 => upper,
            _ if planted!(IdsOfTheProcess) => upper,
            id => id.cast_unsigned(),
        };
        let count = self.count.fetch_add(1, Ordering::Relaxed) & ((1 << COUNTER_BITS) - 1);
        // The version replaces four bits of the session's number, which move to the lower half.
        let displaced = (session & VERSION) >> VERSION_SHIFT;
        let spare = lower & ((1 << (VARIANT_SHIFT - 4)) - 1) & !((1 << COUNTER_BITS) - 1);
        let lower = 0b10 << VARIANT_SHIFT | displaced << (VARIANT_SHIFT - 4) | spare | count;
        Uuid::from_u64_pair(session & !VERSION | RANDOM << VERSION_SHIFT, lower)
    }
}

// Requests that are repeated until they are answered. They are harmless when applied twice, and their callers
// wait as long as the session lives. An operation with a deadline and a retry policy uses `Attempts` instead.

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
) -> Result<Reply, Cause> {
    loop {
        let sync = context.session.submit(sync(path), Lane::Cleanup);
        let read = context.session.submit(read.clone(), Lane::Cleanup);
        match (sync.await.answer(), read.await.answer()) {
            // The link was lost between the two requests, so together they prove nothing.
            (_, Err(Cause::LinkLost)) | (Err(Cause::LinkLost), _) => {}
            (_, Err(cause)) | (Err(cause), _) => return Err(cause),
            // Without the `sync` the read proves nothing.
            (Ok(Reply { result: Err(_), .. }), Ok(_)) => return Err(Cause::Deadline),
            (Ok(_), Ok(read)) => return Ok(read),
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
    use docent_proto::Code;
    use std::collections::HashSet;
    use tokio::time::Instant;
    use uuid::Variant;

    #[test]
    fn no_id_is_given_out_twice_and_each_is_one_of_version_4() {
        let ids = Ids::default();
        let drawn: HashSet<_> = (0..10_000).map(|_| ids.fresh(0x1234_5678_9abc_def0)).collect();
        assert_eq!(drawn.len(), 10_000);
        assert!(drawn.iter().all(|id| id.get_version_num() == 4 && id.get_variant() == Variant::RFC4122));
    }

    #[test]
    fn sessions_of_processes_with_equal_random_numbers_have_no_id_in_common() {
        let mut drawn = HashSet::new();
        // Numbers that differ in one bit each, including the bits of the version.
        for session in (0..64).map(|bit| 0x0100_0000_0000_0000 ^ (1_i64 << bit)).filter(|id| *id != 0) {
            let copy = Ids { random: (7, 7), count: AtomicU64::new(3) };
            assert!((0..100).all(|_| drawn.insert(copy.fresh(session))), "{session:x}");
        }
    }

    #[test]
    fn before_a_session_has_a_number_its_ids_are_random() {
        let [one, other] = [(); 2].map(|()| Ids::default().fresh(0));
        assert_ne!(one, other);
        assert_eq!((one.get_version_num(), one.get_variant()), (4, Variant::RFC4122));
    }

    fn reply(code: Code) -> Outcome {
        Outcome::Reply(Reply::new(Err(code), 1))
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
