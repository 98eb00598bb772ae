use super::frame::{self, Malformed};
use super::{ItemName, QueueLayout, number};
use bytes::Bytes;
use docent_core::planted;
use docent_core::recipe::ClaimRequest;

/// Text before the name of a queue's own folder below a lock path.
const OWN: &str = "docent-";

/// Returns the name of the folder below `lock_path` that belongs only to the queue at `path`. The name is the
/// relative path between the two, which is the same for clients of all namespaces.
fn own_folder(lock_path: &str, path: &str) -> String {
    if planted!(QueuesShareLockPath) {
        return format!("{OWN}queues");
    }
    let (mut from, mut to) = (lock_path.split('/').peekable(), path.split('/').peekable());
    while from.peek().is_some() && from.peek() == to.peek() {
        from.next();
        to.next();
    }
    let steps: Vec<_> =
        from.map(|_| "..".to_owned()).chain(to.map(|step| step.replace('%', "%25"))).collect();
    format!("{OWN}{}", steps.join("%2F"))
}

/// Paths of a queue: items, claims, idle consumers and dead letters.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) layout: QueueLayout,
    /// Folder of the items.
    pub(crate) items: String,
    /// Folder of the claims.
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
            QueueLayout::Curator { lock_path } => {
                let own = format!("{lock_path}/{}", own_folder(lock_path, path));
                Self {
                    items: path.to_owned(),
                    claims: lock_path.clone(),
                    dead: format!("{own}/dead"),
                    idle: format!("{own}/idle"),
                    lock: format!("{own}/lock"),
                    layout,
                }
            }
        }
    }

    /// Finds, among the children of the folder of the claims, the folder of another queue that has its claims
    /// there.
    pub(crate) fn other_queue<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Option<&'n String> {
        let QueueLayout::Curator { lock_path } = &self.layout else { return None };
        let own = own_folder(lock_path, &self.items);
        names.into_iter().find(|name| name.starts_with(OWN) && **name != own)
    }

    /// Returns the text before the number in an item's name.
    pub(crate) fn prefix(&self) -> &'static str {
        match self.layout {
            QueueLayout::Native => "item-",
            QueueLayout::Curator { .. } => "queue-",
        }
    }

    /// Returns the path for creating an item, without its number.
    pub(crate) fn new_item(&self, priority: i32, due: Option<u64>) -> String {
        format!("{}/{}", self.items, ItemName::prefix(self.prefix(), priority, due))
    }

    /// Returns the path of an item of the native layout that keeps its place and may be handed out from the
    /// time `until`, in milliseconds since the Unix epoch.
    pub(crate) fn returned_item(&self, name: &str, until: u64) -> Option<String> {
        Some(self.item(&ItemName::returned(name.to_owned(), self.prefix(), until)?))
    }

    /// Returns whether an item's name can contain the time from which the item may be handed out.
    pub(crate) fn has_delays(&self) -> bool {
        self.layout == QueueLayout::Native
    }

    pub(crate) fn item(&self, name: &str) -> String {
        format!("{}/{name}", self.items)
    }

    pub(crate) fn claim(&self, name: &str) -> String {
        format!("{}/{name}", self.claims)
    }

    /// Returns the claim request for an item, which also hands the item out if `handed_out`.
    pub(crate) fn claim_request(&self, name: &str, handed_out: bool) -> ClaimRequest {
        let beside_curator = self.layout != QueueLayout::Native;
        ClaimRequest { claim: self.claim(name), node: self.item(name), handed_out, beside_curator }
    }

    /// Returns whether deliveries of items are counted.
    pub(crate) fn counts(&self) -> bool {
        self.layout == QueueLayout::Native
    }

    /// Parses the name of an item in the folder. Returns `None` for other names.
    pub(crate) fn parse(&self, name: String) -> Option<ItemName> {
        match self.layout {
            QueueLayout::Native => ItemName::parse(name, self.prefix()),
            QueueLayout::Curator { .. } => {
                let number = number(&name, self.prefix())?;
                Some(ItemName { text: name, priority: 0, due: None, returned: false, number })
            }
        }
    }

    /// Returns the node's data for an item; `base` is added to the servers' count of the item's claims.
    pub(crate) fn frame(&self, item: &Bytes, base: i32) -> Option<Bytes> {
        match self.layout {
            QueueLayout::Native => Some(frame::native(item, base)),
            QueueLayout::Curator { .. } => frame::curator(item),
        }
    }

    /// Returns whether the data of a node has another format than the items of this layout, so that no
    /// consumer of the queue can decode it. A newer version of the format counts as the same format.
    pub(crate) fn is_foreign(&self, node: &[u8]) -> bool {
        match self.layout {
            QueueLayout::Native => !frame::is_native(node),
            QueueLayout::Curator { .. } => !frame::is_curator(node),
        }
    }

    /// Returns the number that is added to the servers' count of claims, and the item of a node's data.
    pub(crate) fn unframe(&self, node: &Bytes) -> Result<(i32, Bytes), Malformed> {
        match self.layout {
            QueueLayout::Native => frame::of_native(node),
            QueueLayout::Curator { .. } => frame::of_curator(node).map(|item| (0, item)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_has_its_own_folder_below_a_lock_path_in_any_namespace() {
        assert_eq!(own_folder("/locks", "/jobs"), "docent-..%2Fjobs");
        for namespace in ["", "/app", "/app/eu"] {
            let folder =
                |path: &str| own_folder(&format!("{namespace}/a/locks"), &format!("{namespace}{path}"));
            assert_eq!(folder("/a/jobs"), "docent-..%2Fjobs");
            assert_eq!(folder("/b/jobs"), "docent-..%2F..%2Fb%2Fjobs");
            assert_eq!(folder("/a/locks/jobs"), "docent-jobs");
            assert_eq!(folder("/a"), "docent-..");
            assert_ne!(folder("/a/x%2Fy"), folder("/a/x/y"));
        }
    }
}
