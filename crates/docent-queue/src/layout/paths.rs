use super::QueueLayout;
use super::frame::{self, Malformed};
use bytes::Bytes;
use docent_core::recipe::ClaimRequest;

/// Paths of a queue: items, claims, idle consumers and dead letters.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) layout: QueueLayout,
    /// The folder of the items.
    pub(crate) items: String,
    pub(crate) dead: String,
    pub(crate) idle: String,
    pub(crate) lock: String,
}

impl Paths {
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

    pub(crate) fn claim_request(&self, name: &str) -> ClaimRequest {
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
