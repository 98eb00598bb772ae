use std::time::Duration;

/// Event of a put.
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

/// Event of a take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Taking {
    /// It began.
    Began {
        /// The queue.
        path: String,
        /// Whether it waits for an item.
        waits: bool,
        /// Whether its client is of the newer version, which can decode more items. All takes of a client
        /// say the same.
        newer: bool,
    },
    /// Its future is not polled any more, and not dropped.
    Unpolled,
    /// It is over, with or without an item.
    Over,
}

/// Event of an item that was handed out.
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
        /// Number of times that it was handed out, as the delivery says.
        deliveries: Option<u32>,
    },
    /// The delivery said about itself, without I/O, whether it is held.
    Looked {
        /// `is_held()`.
        held: bool,
    },
    /// It is about to be settled.
    Settling(Settlement),
    /// `Some(true)`: it is settled; `Some(false)`: surely not; `None`: unknown.
    Settled(Option<bool>),
    /// It was given back, or dropped.
    GivenBack {
        /// Time after which it shall be in its place again.
        delay: Duration,
    },
    /// A transaction of the delivery, which creates a node, has ended.
    Wrote {
        /// The node, as the server knows it.
        node: String,
        /// `Some(true)`: it was applied; `Some(false)`: surely not; `None`: unknown.
        applied: Option<bool>,
    },
}

/// Way in which a delivery is settled: in one write, which deletes its item's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Settlement {
    /// It is acknowledged.
    Ack,
    /// It is moved to the dead letters.
    Reject,
    /// It is put back at another place.
    PutBack,
}
