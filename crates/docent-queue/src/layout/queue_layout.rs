use std::fmt;

/// Layout of a queue's items and claims in the tree. All who use a queue need the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum QueueLayout {
    /// Docent's own: items are persistent nodes `<path>/items/item-0000000000`, with a version of the format
    /// before their bytes; a claim is the ephemeral child `claim` of its item; `<path>/idle` is the line of
    /// waiting consumers, `<path>/dead` has the dead letters.
    #[default]
    Native,
    /// Layout of Curator's `DistributedQueue` with a lock path: items are `<path>/queue-0000000000` in its
    /// framing, claims are ephemeral nodes of the items' names below `lock_path`. The line of waiting
    /// consumers and the dead letters are `<lock_path>/docent-idle` and `<lock_path>/docent-dead`, which
    /// Curator does not look at. Consumers of both kinds share the work; Curator's must have the lock path
    /// set too, or they take items that are claimed.
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
