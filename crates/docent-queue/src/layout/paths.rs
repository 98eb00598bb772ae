use super::frame::{self, Malformed};
use super::{ItemName, QueueLayout, number};
use bytes::Bytes;
use docent_core::recipe::ClaimRequest;

/// Paths of a queue: items, claims, idle consumers and dead letters.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) layout: QueueLayout,
    /// The folder of the items.
    pub(crate) items: String,
    /// The folder of the claims.
    pub(crate) claims: String,
    pub(crate) dead: String,
    pub(crate) idle: String,
    pub(crate) lock: String,
}

impl Paths {
    pub(crate) fn new(path: &str, layout: QueueLayout) -> Self {
        match &layout {
            QueueLayout::Native => Self {
                items: format!("{path}/items"),
                claims: format!("{path}/claims"),
                dead: format!("{path}/dead"),
                idle: format!("{path}/idle"),
                lock: format!("{path}/lock"),
                layout,
            },
            QueueLayout::Curator { lock_path } => Self {
                items: path.to_owned(),
                claims: lock_path.clone(),
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
    pub(crate) fn new_item(&self, priority: i32, due: Option<u64>) -> String {
        format!("{}/{}", self.items, ItemName::prefix(self.prefix(), priority, due))
    }

    pub(crate) fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.items)
    }

    pub(crate) fn claim(&self, name: &str) -> String {
        format!("{}/{name}", self.claims)
    }

    /// The child of an item that is made and deleted when the item is handed out.
    pub(crate) fn counter(&self, name: &str) -> String {
        format!("{}/{name}/count", self.items)
    }

    /// The claim of an item, `counted` as handed out where that is counted.
    pub(crate) fn claim_request(&self, name: &str, counted: bool) -> ClaimRequest {
        let counter = (counted && self.counts()).then(|| self.counter(name));
        ClaimRequest { claim: self.claim(name), node: self.item(name), counter }
    }

    /// True when it is counted how often items are handed out.
    pub(crate) fn counts(&self) -> bool {
        self.layout == QueueLayout::Native
    }

    /// The item with this name in the folder; `None` for names of others.
    pub(crate) fn parse(&self, name: String) -> Option<ItemName> {
        match self.layout {
            QueueLayout::Native => ItemName::parse(name, self.prefix()),
            QueueLayout::Curator { .. } => {
                let number = number(&name, self.prefix())?;
                Some(ItemName { text: name, priority: 0, due: None, number })
            }
        }
    }

    /// The node's data for an item, with the number that is added to the servers' count of its claims.
    pub(crate) fn frame(&self, item: &Bytes, base: i32) -> Option<Bytes> {
        match self.layout {
            QueueLayout::Native => Some(frame::native(item, base)),
            QueueLayout::Curator { .. } => frame::curator(item),
        }
    }

    /// The item of a node's data, behind the number that is added to the servers' count of its claims.
    pub(crate) fn unframe(&self, node: &Bytes) -> Result<(i32, Bytes), Malformed> {
        match self.layout {
            QueueLayout::Native => frame::of_native(node),
            QueueLayout::Curator { .. } => frame::of_curator(node).map(|item| (0, item)),
        }
    }
}
