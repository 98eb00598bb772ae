use std::fmt;

/// Layout of a queue's items and claims in the tree. All users of a queue need the same layout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum QueueLayout {
    /// Docent's own layout. Items are persistent nodes `<path>/items/item-0000000000`, whose data begins with
    /// the format version. A claim is the ephemeral node `<path>/claims/item-0000000000`, and an item in work
    /// has an ephemeral child whose name ends with `-claim`. `<path>/idle` is the line of waiting consumers,
    /// and `<path>/dead` contains the dead letters.
    #[default]
    Native,
    /// Layout of Curator's `DistributedQueue` with a lock path. Items are nodes `<path>/queue-0000000000` in
    /// Curator's framing, and claims are ephemeral nodes with the items' names below `lock_path`. The line of
    /// waiting consumers and the dead letters are `idle` and `dead` in a folder `<lock_path>/docent-…`, which
    /// Curator ignores. The folder's name identifies the queue. Consumers of both kinds share the work.
    /// Curator's consumers must have the lock path set as well; otherwise they take claimed items.
    ///
    /// Give each queue its own lock path. Curator names a claim only after its item, so if two queues share a
    /// lock path, items with the same number exclude each other: the second item waits until the first is
    /// done. Consumers log a warning in this case.
    ///
    /// This layout has fewer guarantees:
    ///
    /// - Deliveries are not counted, so there is no limit of deliveries, and
    ///   [`Delivery::deliveries`](crate::Delivery::deliveries) returns `None`.
    /// - A node of several items (Curator's `putMulti`) is moved to the dead letters as a whole.
    /// - Curator's producers may duplicate an item if a reply is lost, and Curator's consumers delete an item
    ///   that they cannot decode.
    Curator {
        /// Folder of the claims.
        lock_path: String,
    },
}

impl fmt::Display for QueueLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
            Self::Curator { lock_path } => write!(f, "curator with claims in {lock_path:?}"),
        }
    }
}
