use super::{
    Announcing, Attempt, AttemptId, CallId, Candidacy, Delivering, Ending, FaultKind, Following, Grant,
    Handle, LinkState, Meeting, Onlooking, Publishing, Putting, Taking, Use, Viewing,
};
use std::time::Duration;

/// Kind of an event, with its details.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A client process started.
    Started,
    /// A client's process died, and with it all it knew.
    Crashed,
    /// `close` or `shutdown` was called.
    Closing,
    /// `shutdown` returned, and named these nodes, by their paths, as left behind.
    ShutDown(Vec<String>),
    /// `close` or `shutdown` returned.
    Closed,
    /// The state of the client's connection changed, as its watcher told.
    Connection {
        /// The new state.
        state: LinkState,
        /// Counts the client's sessions.
        generation: u64,
        /// Number of times that the link was lost.
        suspensions: u64,
        /// The session, once there is one.
        session: Option<i64>,
    },

    /// An attempt to hold something began.
    Began(Attempt),
    /// It holds now.
    Granted(AttemptId, Grant),
    /// It does not hold, and never will.
    Ended(AttemptId, Ending),
    /// Another handle of a hold was asked for, without I/O.
    Reentered(AttemptId, Handle),
    /// The guard said about itself, without I/O, whether it is held.
    Looked {
        /// Of which attempt.
        attempt: AttemptId,
        /// `is_held()`.
        held: bool,
        /// Whether its cancellation token was cancelled.
        cancelled: bool,
    },
    /// A linearizable check of the guard answered.
    Verified {
        /// Of which attempt.
        attempt: AttemptId,
        /// `Some(true)`: held at that moment; `Some(false)`: lost; `None`: no answer.
        held: Option<bool>,
    },
    /// The guard was used at a resource that looks at fences.
    Used(AttemptId, Use),
    /// A transaction of the guard was committed, or not.
    Committed {
        /// Of which attempt.
        attempt: AttemptId,
        /// `Some(true)`: applied; `Some(false)`: surely not; `None`: unknown.
        applied: Option<bool>,
    },
    /// `lost()` resolved.
    Lost(AttemptId),
    /// One of several handles of a hold was given up; others are left.
    InnerReleased(AttemptId),
    /// `release` was called on the last handle.
    Releasing(AttemptId),
    /// `release` returned.
    Released {
        /// Of which attempt.
        attempt: AttemptId,
        /// Whether it returned success.
        ok: bool,
    },
    /// The last handle was dropped.
    Dropped(AttemptId),
    /// These attempts are one call: they are granted, lost and given up together.
    Together(Vec<AttemptId>),
    /// A hold became a shared one, in the same place.
    SteppedDown {
        /// The attempt by which it was held alone.
        from: AttemptId,
        /// The one by which it is shared.
        to: AttemptId,
    },

    /// Something about a member of a double barrier. Members have numbers as attempts do, and are none.
    Met(AttemptId, Meeting),
    /// A waiter at a barrier went on.
    Passed {
        /// The barrier.
        path: String,
        /// Time since which it waited.
        since: Duration,
    },

    /// Something about a candidate of an election. Candidates have numbers as attempts do, and are none: each
    /// time one stands is an attempt, whose grant is its term.
    Stood(AttemptId, Candidacy),
    /// Something about an onlooker at an election. Onlookers have numbers as attempts do, and are none.
    LookedOn(AttemptId, Onlooking),

    /// Something about a put into a queue. Puts have numbers as attempts do, and are none; so do takes and
    /// deliveries.
    Put(AttemptId, Putting),
    /// Something about a call, or a stream, that takes items from a queue.
    Took(AttemptId, Taking),
    /// Something about an item that was handed out.
    Delivered(AttemptId, Delivering),
    /// Something about a listed member, which has a number as attempts do.
    Announced(AttemptId, Announcing),
    /// Something about a viewer of a folder, which has a number as attempts do.
    Viewed(AttemptId, Viewing),
    /// Something about a call that changes a published value, and has a number as attempts do.
    Published(AttemptId, Publishing),
    /// Something about a follower of a published value, which has a number as attempts do.
    Followed(AttemptId, Following),

    /// A method with a deadline was called.
    Called {
        /// Names the call.
        call: CallId,
        /// The method.
        operation: &'static str,
        /// Longest time that it may take.
        within: Duration,
    },
    /// It returned.
    Returned {
        /// Which call.
        call: CallId,
        /// Its result, as kind of the error or `ok`.
        outcome: String,
    },
    /// Its future was dropped.
    Abandoned(CallId),

    /// A watch event arrived at the client.
    Notified {
        /// The path, as the server knows it.
        path: String,
    },
    /// A request left the client.
    Asked {
        /// The operation's number in the protocol.
        op: i32,
        /// The path, as the server knows it, where the operation has one.
        path: Option<String>,
    },

    /// A fault began, at a client or for all.
    Fault(FaultKind),
    /// A fault that lasts ended.
    Healed(FaultKind),
    /// All faults are over; from now on everything has to come to its end.
    Calm,
}
