use std::fmt;

/// Layout of a queue's items and claims in the tree. All who use a queue need the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum QueueLayout {
    /// Docent's own. Items are persistent nodes `<path>/items/item-0000000000`, with the version of the
    /// format before their bytes. A claim is the ephemeral node `<path>/claims/item-0000000000`, and an item
    /// in work has an ephemeral child whose name ends with `-claim`. `<path>/idle` is the line of waiting
    /// consumers, `<path>/dead` has the dead letters.
    #[default]
    Native,
    /// Layout of Curator's `DistributedQueue` with a lock path: items are `<path>/queue-0000000000` in its
    /// framing, claims are ephemeral nodes of the items' names below `lock_path`. The line of waiting
    /// consumers and the dead letters are `idle` and `dead` in a folder `<lock_path>/docent-…`, which Curator
    /// does not look at. The folder's name says which queue it belongs to. Consumers of both kinds share the
    /// work; Curator's must have the lock path set too, or they take items that are claimed.
    ///
    /// Give each queue its own lock path. If two queues share one, items with the same number exclude each
    /// other, because Curator names a claim after its item alone: the second waits until the first is done.
    /// Consumers log a warning in this case.
    ///
    /// It cannot promise everything: deliveries are not counted, so that there is no limit of them
    /// ([`Delivery::deliveries`](crate::Delivery::deliveries) is `None`); a node of several items (Curator's
    /// `putMulti`) goes to the dead letters whole; Curator's producers may double an item when a reply is
    /// lost, and its consumers delete an item that they cannot decode.
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
