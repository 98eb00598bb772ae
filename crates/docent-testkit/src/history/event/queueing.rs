use std::time::Duration;

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
