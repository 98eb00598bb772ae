use std::time::Duration;

/// An event of a put.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Putting {
    /// The put began.
    Began {
        /// Path of the queue.
        path: String,
        /// The items, which no other put contains.
        items: Vec<u64>,
    },
    /// The put ended. `Some(true)`: all items were put; `Some(false)`: definitely none; `None`: unknown.
    Ended(Option<bool>),
}

/// An event of a take.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Taking {
    /// The take began.
    Began {
        /// Path of the queue.
        path: String,
        /// Whether the take waits for an item.
        waits: bool,
        /// Whether the client has the newer version, which can decode more items. The same for all takes of a
        /// client.
        newer: bool,
    },
    /// The future of the take is no longer polled, but not dropped.
    Unpolled,
    /// The take ended, with or without an item.
    Ended,
}

/// An event of an item that was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivering {
    /// The item was handed out.
    Given {
        /// The item.
        item: u64,
        /// Path of the item's node, as the server knows it.
        node: String,
        /// Fence of the delivery.
        fence: u64,
        /// How often the item was handed out, as the delivery reports.
        deliveries: Option<u32>,
    },
    /// The delivery was asked, without I/O, whether it is held.
    HeldChecked {
        /// Result of `is_held()`.
        held: bool,
    },
    /// The delivery is about to be settled.
    Settling(Settlement),
    /// `Some(true)`: the delivery is settled; `Some(false)`: definitely not; `None`: unknown.
    Settled(Option<bool>),
    /// The delivery was given back, or dropped.
    GivenBack {
        /// Time after which the item may be handed out again.
        delay: Duration,
    },
    /// A transaction of the delivery that creates a node ended.
    Wrote {
        /// Path of the node, as the server knows it.
        node: String,
        /// `Some(true)`: applied; `Some(false)`: definitely not applied; `None`: unknown.
        applied: Option<bool>,
    },
}

/// How a delivery is settled. Each way is one write that deletes the item's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Settlement {
    /// Acknowledges the item.
    Ack,
    /// Moves the item to the dead letters.
    Reject,
    /// Puts the item back at another place.
    PutBack,
}
