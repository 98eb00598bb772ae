use super::{
    Announcing, Attempt, AttemptId, CallId, Candidacy, Delivering, Ending, FaultKind, Following, Grant,
    Handle, LinkState, Meeting, Observing, Publishing, Putting, Taking, Use, Viewing,
};
use std::time::Duration;

/// Kind of an event, with details.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A client process started.
    Started,
    /// A client process died and lost its state.
    Crashed,
    /// `close` or `shutdown` was called.
    Closing,
    /// `shutdown` returned, with the paths of the nodes that it reported as left behind.
    ShutDown(Vec<String>),
    /// `close` or `shutdown` returned.
    Closed,
    /// The state of the client's connection changed, as the client's watcher reported.
    Connection {
        /// The new state.
        state: LinkState,
        /// Number of the client's session, from 1.
        generation: u64,
        /// Number of times that the link was lost.
        suspensions: u64,
        /// The session, if there is one.
        session: Option<i64>,
    },

    /// An attempt to hold something began.
    Began(Attempt),
    /// The attempt was granted.
    Granted(AttemptId, Grant),
    /// The attempt ended without a grant.
    Ended(AttemptId, Ending),
    /// Another handle of a hold was requested, without I/O.
    Reentered(AttemptId, Handle),
    /// The guard was asked, without I/O, whether it is held.
    HeldChecked {
        /// The attempt of the guard.
        attempt: AttemptId,
        /// Result of `is_held()`.
        held: bool,
        /// Whether the guard's cancellation token was cancelled.
        cancelled: bool,
    },
    /// A linearizable check of the guard returned.
    Verified {
        /// The attempt of the guard.
        attempt: AttemptId,
        /// `Some(true)`: held at that moment; `Some(false)`: lost; `None`: no answer.
        held: Option<bool>,
    },
    /// The guard was used with a resource that checks fences.
    Used(AttemptId, Use),
    /// A transaction of the guard ended.
    Committed {
        /// The attempt of the guard.
        attempt: AttemptId,
        /// `Some(true)`: applied; `Some(false)`: definitely not applied; `None`: unknown.
        applied: Option<bool>,
    },
    /// `lost()` resolved.
    Lost(AttemptId),
    /// One of several handles of a hold was released; others remain.
    InnerReleased(AttemptId),
    /// `release` was called on the last handle.
    Releasing(AttemptId),
    /// The call of `release` returned.
    Released {
        /// The attempt of the guard.
        attempt: AttemptId,
        /// Whether the call returned success.
        ok: bool,
    },
    /// The last handle was dropped.
    Dropped(AttemptId),
    /// These attempts are one call: they are granted, lost and given up together.
    Together(Vec<AttemptId>),
    /// An exclusive hold was downgraded to a shared one, in the same place of the line.
    Downgraded {
        /// The attempt of the exclusive hold.
        from: AttemptId,
        /// The attempt of the shared hold.
        to: AttemptId,
    },

    /// An event of a member of a double barrier. Members are numbered like attempts, but are not attempts.
    Met(AttemptId, Meeting),
    /// A waiter at a barrier passed it.
    Passed {
        /// Path of the barrier.
        path: String,
        /// Time at which the waiter began to wait.
        since: Duration,
    },

    /// An event of a candidate of an election. Candidates are numbered like attempts, but are not attempts:
    /// each of a candidate's campaigns is an attempt, and its grant is the term.
    Campaigned(AttemptId, Candidacy),
    /// An event of an observer of an election. Observers are numbered like attempts, but are not attempts.
    Observed(AttemptId, Observing),

    /// An event of a put into a queue. Puts, takes and deliveries are numbered like attempts, but are not
    /// attempts.
    Put(AttemptId, Putting),
    /// An event of a call, or of a stream, that takes items from a queue.
    Took(AttemptId, Taking),
    /// An event of an item that was handed out.
    Delivered(AttemptId, Delivering),
    /// An event of a member of a folder, which is numbered like an attempt.
    Announced(AttemptId, Announcing),
    /// An event of a viewer of a folder, which is numbered like an attempt.
    Viewed(AttemptId, Viewing),
    /// An event of a call that changes a published value. The call is numbered like an attempt.
    Published(AttemptId, Publishing),
    /// An event of a follower of a published value, which is numbered like an attempt.
    Followed(AttemptId, Following),

    /// A method with a deadline was called.
    Called {
        /// Number of the call.
        call: CallId,
        /// The method.
        operation: &'static str,
        /// Longest time that the call may take.
        within: Duration,
    },
    /// The method returned.
    Returned {
        /// Number of the call.
        call: CallId,
        /// `ok`, or the kind of the error.
        outcome: String,
    },
    /// The future of the call was dropped.
    Abandoned(CallId),

    /// A watch event arrived at the client.
    Notified {
        /// The path, as the server knows it.
        path: String,
    },
    /// The client sent a request.
    Requested {
        /// Number of the operation in the protocol.
        op: i32,
        /// The path, as the server knows it, if the operation has one.
        path: Option<String>,
    },

    /// A fault began, at a client or for all clients.
    Fault(FaultKind),
    /// A lasting fault ended.
    Healed(FaultKind),
    /// All faults have ended. From now on all attempts, clients and sessions must come to their end.
    Calm,
}
