use crate::frame::{self, Malformed};
use bytes::Bytes;
use docent_core::recipe::ClaimRequest;

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

/// Paths of a queue: items, claims, idle consumers and dead letters.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) layout: QueueLayout,
    /// The folder of the items.
    pub(crate) items: String,
    pub(crate) dead: String,
    pub(crate) idle: String,
    pub(crate) lock: String,
}

impl Places {
    pub(crate) fn new(path: &str, layout: QueueLayout) -> Self {
        match &layout {
            QueueLayout::Native => Self {
                items: format!("{path}/items"),
                dead: format!("{path}/dead"),
                idle: format!("{path}/idle"),
                lock: format!("{path}/lock"),
                layout,
            },
            QueueLayout::Curator { lock_path } => Self {
                items: path.to_owned(),
                dead: format!("{lock_path}/docent-dead"),
                idle: format!("{lock_path}/docent-idle"),
                lock: format!("{lock_path}/docent-lock"),
                layout,
            },
        }
    }

    /// Text before the number in an item's name.
    pub(crate) fn prefix(&self) -> &'static str {
        match self.layout {
            QueueLayout::Native => "item-",
            QueueLayout::Curator { .. } => "queue-",
        }
    }

    /// The path to create an item at, without its number.
    pub(crate) fn new_item(&self) -> String {
        format!("{}/{}", self.items, self.prefix())
    }

    pub(crate) fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.items)
    }

    pub(crate) fn claim(&self, name: &str) -> String {
        match &self.layout {
            QueueLayout::Native => format!("{}/claim", self.item(name)),
            QueueLayout::Curator { lock_path } => format!("{lock_path}/{name}"),
        }
    }

    pub(crate) fn wanted(&self, name: &str) -> ClaimRequest {
        ClaimRequest { claim: self.claim(name), node: self.item(name) }
    }

    /// True when claims are children of their items, so that they are counted.
    pub(crate) fn counts_claims(&self) -> bool {
        self.layout == QueueLayout::Native
    }

    /// The node's data for an item.
    pub(crate) fn frame(&self, item: &Bytes) -> Option<Bytes> {
        match self.layout {
            QueueLayout::Native => Some(frame::native(item)),
            QueueLayout::Curator { .. } => frame::curator(item),
        }
    }

    /// The item of a node's data.
    pub(crate) fn unframe(&self, node: &Bytes) -> Result<Bytes, Malformed> {
        match self.layout {
            QueueLayout::Native => frame::of_native(node),
            QueueLayout::Curator { .. } => frame::of_curator(node),
        }
    }
}
