use super::announcing::{Announcing, Viewing};
use super::publishing::{Following, Publishing};
use std::fmt;
use std::time::Duration;

/// A client of a run. A client that crashes and starts again keeps its number and gets a new life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    /// Its number, from 0.
    pub number: u32,
    /// How often it was started before.
    pub life: u32,
}

/// One attempt to hold something, over all clients of a run. What was granted keeps the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(pub u64);

/// One call of a client's method, over all clients of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Event {
    /// When, since the run began. One clock for all clients and the server.
    pub at: Duration,
    /// Where; `None` for what was done to the world as a whole.
    pub client: Option<ClientId>,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum What {
    /// A client process started.
    Started,
    /// A client's process died, and with it all it knew.
    Crashed,
    /// `close` was called.
    Closing,
    /// `close` returned.
    Closed,
    /// The state of the client's connection changed, as its watcher told.
    Connection {
        /// The new state.
        state: LinkState,
        /// Counts the client's sessions.
        epoch: u64,
        /// Counts how often the link was lost.
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
    /// Another handle of what is held was asked for, without I/O.
    Reentered(AttemptId, Handle),
    /// What the guard said about itself, without I/O.
    Looked {
        /// Of which attempt.
        attempt: AttemptId,
        /// `is_held()`.
        held: bool,
        /// Whether its cancellation token was cancelled.
        cancelled: bool,
    },
    /// What a linearizable check of the guard said.
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
    /// One of several handles of what is held was given up; others are left.
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
    /// These attempts are one call: what they want is granted, lost and given up together.
    Together(Vec<AttemptId>),
    /// What was held alone is held with others from now on, in the same place.
    SteppedDown {
        /// The attempt by which it was held alone.
        from: AttemptId,
        /// The one by which it is shared.
        to: AttemptId,
    },

    /// Something about a member of a double barrier. Members have numbers as attempts do, and are none.
    Met(AttemptId, Meeting),
    /// Who waited at a barrier since then went on.
    Passed {
        /// The barrier.
        path: String,
        /// When it began to wait.
        since: Duration,
    },

    /// Something about a candidate of an election. Candidates have numbers as attempts do, and are none: each time one stands is an
    /// attempt, and its term is what that is granted.
    Stood(AttemptId, Candidacy),
    /// Something about who looks on at an election. Onlookers have numbers as attempts do, and are none.
    LookedOn(AttemptId, Onlooking),

    /// Something about a put into a queue. Puts have numbers as attempts do, and are none; so do takes and deliveries.
    Put(AttemptId, Putting),
    /// Something about a call, or a stream, that takes items from a queue.
    Took(AttemptId, Taking),
    /// Something about an item that was handed out.
    Delivered(AttemptId, Delivering),
    /// Something about one who is listed, and has a number as attempts do.
    Announced(AttemptId, Announcing),
    /// Something about one who looks at a folder, and has a number as attempts do.
    Viewed(AttemptId, Viewing),
    /// Something about a call that changes a published value, and has a number as attempts do.
    Published(AttemptId, Publishing),
    /// Something about one who follows a published value, and has a number as attempts do.
    Followed(AttemptId, Following),

    /// A method with a deadline was called.
    Called {
        /// Names the call.
        call: CallId,
        /// The method.
        operation: &'static str,
        /// How long it may take at most.
        within: Duration,
    },
    /// It returned.
    Returned {
        /// Which call.
        call: CallId,
        /// What it returned, as kind of the error or `ok`.
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

/// An attempt to hold something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// Its number.
    pub id: AttemptId,
    /// The path of the thing, as the server knows it.
    pub path: String,
    /// What it wants of it.
    pub role: Role,
    /// How long it waits for others: `None` for as long as it takes, zero for not at all.
    pub patience: Option<Duration>,
}

/// What an attempt wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Role {
    /// To hold it alone.
    Exclusive,
    /// To hold it together with others who want that.
    Shared,
    /// One of so many permits that are wanted together.
    Permits(u32),
    /// To come to its turn, which is given up for what goes together with it.
    Turn,
}

/// What a member of a double barrier did.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Meeting {
    /// It wants to be let in.
    Came {
        /// The barrier.
        path: String,
        /// How many have to come.
        members: u32,
    },
    /// It was let in, by this node.
    Entered(String),
    /// It wants to leave, and waits for the others.
    Leaving,
    /// All others had left, or it failed.
    Left {
        /// Whether it returned success.
        ok: bool,
    },
    /// It gave up: it timed out, failed or was dropped.
    GaveUp,
}

/// What a candidate of an election did.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Candidacy {
    /// It stands, by this attempt.
    Stands {
        /// The attempt. What it is granted is a term.
        attempt: AttemptId,
        /// How long its work may go on after the end of its lease, if work is bound to its terms.
        bound: Option<Duration>,
        /// How long it waits when the leader before it did not resign.
        delay: Duration,
    },
    /// It is about to be stopped or dropped: nobody has to wonder that its work ends.
    Stopping,
}

/// What somebody did who looks on at an election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Onlooking {
    /// It asks who leads at this path, once.
    Asks(String),
    /// It waits for news of who leads at this path.
    Waits(String),
    /// It was shown who leads, by the fence, or that nobody stands.
    Shown(Option<u64>),
    /// It does not look on any more, or its question failed.
    Left,
}

/// What became of a put.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Putting {
    /// It began.
    Began {
        /// The queue.
        path: String,
        /// The items, which nobody else puts.
        items: Vec<u64>,
    },
    /// It is over. `Some(true)`: all were put; `Some(false)`: surely none; `None`: unknown.
    Ended(Option<bool>),
}

/// What became of a take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Taking {
    /// It began.
    Began {
        /// The queue.
        path: String,
        /// Whether it waits for an item.
        waits: bool,
    },
    /// It is over, whatever came of it.
    Over,
}

/// What became of an item that was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivering {
    /// It was handed out.
    Given {
        /// The item.
        item: u64,
        /// The item's node, as the server knows it.
        node: String,
        /// The fence of the delivery.
        fence: u64,
        /// How often it was handed out, as the delivery says.
        deliveries: Option<u32>,
    },
    /// What the delivery said about itself, without I/O.
    Looked {
        /// `is_held()`.
        held: bool,
    },
    /// It is about to be acknowledged.
    Acking,
    /// `Some(true)`: it is acknowledged; `Some(false)`: surely not; `None`: unknown.
    Acked(Option<bool>),
    /// It was given back, or dropped.
    GivenBack {
        /// After how long it is to be in its place again.
        delay: Duration,
    },
}

/// What was granted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The node by which it is held, as the server knows it.
    pub node: String,
    /// The session that the client had.
    pub session: i64,
    /// The client's epoch.
    pub epoch: u64,
    /// The fencing token, where there is one.
    pub fence: Option<u64>,
}

/// How an attempt ended without a grant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ending {
    /// Somebody else held it.
    Busy,
    /// It took too long.
    TimedOut,
    /// The future was dropped.
    Cancelled,
    /// Its turn came and was used: what goes together with it was granted.
    Passed,
    /// The kind of the error.
    Failed(String),
}

/// What came of asking for another handle of what is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handle {
    /// There is one more.
    Given,
    /// Refused because the hold is lost.
    Lost,
}

/// A use of a fenced resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Use {
    /// The token shown.
    pub fence: u64,
    /// Whether the resource accepted it.
    pub accepted: bool,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkState {
    /// No session yet.
    Connecting,
    /// All is well.
    Connected,
    /// The link is down, the session may live.
    Suspended,
    /// The session is over.
    Lost,
    /// Connected to a server that only reads.
    ReadOnly,
    /// The client is closed.
    Closed,
}

/// A fault. The `…` of a name tells what is gone while it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// Nothing passes between the client and the server.
    Cut,
    /// What the client sends does not arrive.
    CutToServer,
    /// What the server sends does not arrive.
    CutToClient,
    /// Frames are held back, and arrive when this ends.
    Held,
    /// Frames take longer.
    Slow,
    /// The process stands still.
    Frozen,
    /// The process died.
    Crashed,
    /// The link was reset at a request: before or after it was applied.
    Reset {
        /// Whether the request was applied.
        applied: bool,
    },
    /// A reply was swallowed, the link stays.
    Swallowed,
    /// A future was dropped at one of its polls.
    Cancelled,
    /// The session was ended from outside.
    Expired,
    /// The node was deleted by somebody else.
    Deleted,
    /// The server went away and came back.
    Bounced,
    /// The server grants smaller timeouts.
    ShortTimeouts,
    /// The follower of some clients lost its leader: it answers reads from what it has, and nothing else.
    CutOff,
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.life == 0 {
            write!(f, "c{}", self.number)
        } else {
            write!(f, "c{}.{}", self.number, self.life)
        }
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}", self.0)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.4} ", self.at.as_secs_f64())?;
        match self.client {
            Some(client) => write!(f, "{:<6}", client.to_string())?,
            None => write!(f, "{:<6}", "world")?,
        }
        write!(f, " {:?}", self.what)
    }
}
