//! Where a queue's nodes are, and how an item's bytes are framed in its node.

use super::{ItemName, number};
use bytes::{BufMut, Bytes, BytesMut};
use docent_core::planted;
use docent_core::recipe::ClaimRequest;
use std::fmt;

/// Text before the name of a queue's own folder below a lock path.
const OWN: &str = "docent-";

/// Prefix of an item: a mark and the format version, 1. It is followed by four bytes with the number that is
/// added to the servers' count of the item's claims.
const NATIVE: [u8; 4] = [0xd0, 0xce, 0x00, 0x01];
const NATIVE_HEAD: usize = 8;

/// Prefix of Curator's format: a version. Then come the items, each with a code before its length, and an end
/// code.
const CURATOR: [u8; 4] = [0x00, 0x01, 0x00, 0x01];
const CURATOR_ITEM: u8 = 0x01;
const CURATOR_END: u8 = 0x02;

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
    fn prefix(&self) -> &'static str {
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
            QueueLayout::Native => Some(native(item, base)),
            QueueLayout::Curator { .. } => curator(item),
        }
    }

    /// Returns whether the data of a node has another format than the items of this layout, so that no
    /// consumer of the queue can decode it. A newer version of the format counts as the same format.
    pub(crate) fn is_foreign(&self, node: &[u8]) -> bool {
        match self.layout {
            QueueLayout::Native => !is_native(node),
            QueueLayout::Curator { .. } => !node.starts_with(&CURATOR),
        }
    }

    /// Returns the number that is added to the servers' count of claims, and the item of a node's data.
    pub(crate) fn unframe(&self, node: &Bytes) -> Result<(i32, Bytes), String> {
        match self.layout {
            QueueLayout::Native => of_native(node),
            QueueLayout::Curator { .. } => of_curator(node).map(|item| (0, item)),
        }
    }

    /// Returns the data of a node with another number that is added to the servers' count of claims. Returns
    /// `None` if the data is not a queue item.
    pub(crate) fn with_base(&self, node: &Bytes, base: impl FnOnce(i32) -> i32) -> Option<Bytes> {
        let (old, item) = self.unframe(node).ok()?;
        self.frame(&item, base(old))
    }
}

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

/// Returns the data of an item's node; `base` is added to the servers' count of the item's claims.
fn native(item: &[u8], base: i32) -> Bytes {
    [&NATIVE, &base.to_be_bytes()[..], item].concat().into()
}

/// Returns the number that is added to the servers' count of claims, and the item.
fn of_native(node: &Bytes) -> Result<(i32, Bytes), String> {
    let truncated = "the frame is truncated";
    let mark: &[u8; 4] = node.first_chunk().ok_or(truncated)?;
    if !is_native(mark) {
        return Err("the data is not a queue item".to_owned());
    }
    if *mark != NATIVE {
        let version = u16::from_be_bytes([mark[2], mark[3]]);
        return Err(format!("the format version is {version}, and not 1"));
    }
    let base = node.get(4..NATIVE_HEAD).and_then(|base| base.try_into().ok()).ok_or(truncated)?;
    Ok((i32::from_be_bytes(base), node.slice(NATIVE_HEAD..)))
}

/// Returns whether the data of a node is that of an item, in whatever version.
fn is_native(node: &[u8]) -> bool {
    node.starts_with(&NATIVE[..2])
}

fn curator(item: &[u8]) -> Option<Bytes> {
    let mut frame = BytesMut::with_capacity(item.len() + 10);
    frame.put_slice(&CURATOR);
    frame.put_u8(CURATOR_ITEM);
    frame.put_i32(i32::try_from(item.len()).ok()?);
    frame.put_slice(item);
    frame.put_u8(CURATOR_END);
    Some(frame.freeze())
}

/// Returns the single item of a node. Nodes of `putMulti` have several items, which is an error.
fn of_curator(node: &Bytes) -> Result<Bytes, String> {
    let truncated = || "the frame is truncated".to_owned();
    let mut rest = node.clone();
    if rest.len() < 4 {
        return Err(truncated());
    }
    if rest.split_to(4)[..] != CURATOR {
        return Err("the data is not an item of a Curator queue".to_owned());
    }
    let mut items = Vec::new();
    loop {
        match rest.first() {
            Some(&CURATOR_END) if rest.len() == 1 => break,
            Some(&CURATOR_END) => return Err("there are bytes after the end of the item".to_owned()),
            Some(&CURATOR_ITEM) => {}
            Some(other) => return Err(format!("the code {other:#04x} is neither an item nor an end")),
            None => return Err(truncated()),
        }
        let length = rest.get(1..5).ok_or_else(truncated)?;
        let length = i32::from_be_bytes(length.try_into().map_err(|_| truncated())?);
        let length = usize::try_from(length).map_err(|_| format!("a length of {length} is negative"))?;
        let _ = rest.split_to(5);
        if rest.len() < length {
            return Err(truncated());
        }
        items.push(rest.split_to(length));
    }
    match items.as_slice() {
        [item] => Ok(item.clone()),
        items => Err(format!("there are {} items in one node, and not 1", items.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curator_frame_is_curators_byte_for_byte() {
        let frame = curator(b"hello").unwrap();
        assert_eq!(frame[..], *b"\x00\x01\x00\x01\x01\x00\x00\x00\x05hello\x02");
        assert_eq!(of_curator(&frame).unwrap()[..], *b"hello");
        assert_eq!(of_curator(&curator(b"").unwrap()).unwrap().len(), 0);
    }

    #[test]
    fn a_native_frame_has_a_version() {
        assert_eq!(native(b"a", -2)[..], *b"\xd0\xce\x00\x01\xff\xff\xff\xfea");
        assert_eq!(of_native(&native(b"a", -2)).unwrap(), (-2, Bytes::from_static(b"a")));
        let newer = of_native(&Bytes::from_static(b"\xd0\xce\x00\x02a")).unwrap_err();
        assert!(newer.contains("is 2, and not 1"), "{newer}");
    }

    #[test]
    fn a_truncated_or_changed_frame_is_refused_without_a_panic() {
        let of_native = |node: &Bytes| of_native(node).map(|(_, item)| item);
        for (frame, read, head) in [
            (native(b"hello", 0), &of_native as &dyn Fn(&Bytes) -> Result<Bytes, String>, 8),
            (curator(b"hello").unwrap(), &of_curator, 4),
        ] {
            for length in 0..head {
                assert!(read(&frame.slice(..length)).is_err());
            }
            for index in 0..4 {
                let mut wrong = frame.to_vec();
                wrong[index] ^= 0x55;
                assert!(read(&wrong.into()).is_err(), "{index}");
            }
        }
        let frame = curator(b"hello").unwrap();
        for length in 0..frame.len() {
            assert!(of_curator(&frame.slice(..length)).is_err());
        }
        for wrong in [
            &b"\x00\x01\x00\x01\x01\xff\xff\xff\xffhello\x02"[..],
            b"\x00\x01\x00\x01\x01\x7f\xff\xff\xffhello\x02",
            b"\x00\x01\x00\x01\x03\x00\x00\x00\x05hello\x02",
            b"\x00\x01\x00\x01\x01\x00\x00\x00\x05hello\x02\x02",
            b"\x00\x01\x00\x01\x02",
        ] {
            assert!(of_curator(&Bytes::copy_from_slice(wrong)).is_err(), "{wrong:x?}");
        }
        let two = Bytes::from_static(b"\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x01b\x02");
        assert!(of_curator(&two).unwrap_err().contains("2 items in one node"));
    }

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
