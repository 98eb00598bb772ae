use super::{Room, ensure_folder};
use crate::error::PutError;
use crate::layout::{ItemName, Paths, is_in_danger_zone};
use bytes::Bytes;
use docent_core::planted;
use docent_core::recipe::{Hold, children_of_all};
use docent_core::{Children, Client, CreateMode, Error, ErrorKind, Stat, Transaction, TransactionResult};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a request besides an item's bytes and its path, and besides the header that is written when it
/// goes to the dead letters.
const FIELDS: usize = 4096;

/// Number from which on a warning is due: half of the numbers are used up.
const WARN_FROM: i32 = 1 << 30;

/// How often the folder is made anew before that is an error.
const ROUNDS: u32 = 3;

/// A listing of a queue: its items, and which of them are claimed.
pub(crate) struct Listing {
    /// The transaction that made the folder of the items; 0 where there is none.
    pub(crate) folder: i64,
    pub(crate) items: Vec<ItemName>,
    /// The names of items that are claimed.
    pub(crate) claimed: HashSet<String>,
}

/// Place that an item is put at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub(crate) priority: i32,
    /// Time from which on it may be handed out, in milliseconds since the Unix epoch.
    pub(crate) due: Option<u64>,
}

/// Items of a queue at the servers, to list and to put, without regard to what they are.
pub(crate) struct Items {
    client: Client,
    path: String,
    paths: Arc<Paths>,
    /// How many items there may be.
    capacity: Option<usize>,
    room: Room,
    /// Set when numbers are nearly used up.
    exhausted: AtomicBool,
    /// Set when children that are no items were reported.
    reported: AtomicBool,
    /// Set when another queue with the same lock path was reported.
    shared: AtomicBool,
}

impl Items {
    pub(super) fn new(client: &Client, path: &str, paths: &Arc<Paths>, capacity: Option<usize>) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
            paths: Arc::clone(paths),
            capacity,
            room: Room::default(),
            exhausted: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            shared: AtomicBool::new(false),
        }
    }

    /// The items and the claims, in one trip. A queue that does not exist is empty.
    pub(crate) async fn list(&self) -> Result<Listing, Error> {
        // In this order: a claim that is not listed was not there when the items were.
        let folders = [&*self.paths.items, &self.paths.claims];
        let mut listed = children_of_all(&self.client, &folders).await?.into_iter();
        let (items, claims) = (listed.next().flatten(), listed.next().flatten());
        Ok(self.listed(items, claims))
    }

    /// As [`list`](Self::list), with the names of the places in the line of idle consumers.
    pub(crate) async fn list_with_line(&self) -> Result<(Vec<String>, Listing), Error> {
        let folders = [&*self.paths.idle, &self.paths.items, &self.paths.claims];
        let mut listed = children_of_all(&self.client, &folders).await?.into_iter();
        let mut next = || listed.next().flatten();
        let (line, items, claims) = (next(), next(), next());
        Ok((line.map(|line| line.names).unwrap_or_default(), self.listed(items, claims)))
    }

    fn listed(&self, items: Option<Children>, claims: Option<Children>) -> Listing {
        let claims = names(claims);
        self.warn_of_other_queue(&claims);
        self.listing(items, claims)
    }

    /// Warns once if another queue has its claims in the same folder.
    fn warn_of_other_queue(&self, claims: &HashSet<String>) {
        if let Some(other) = self.paths.other_queue(claims)
            && !self.shared.swap(true, Ordering::Relaxed)
        {
            let (path, lock_path) = (&self.path, &self.paths.claims);
            tracing::warn!(%path, %lock_path, %other, "another queue uses the same lock path; items with the same number exclude each other");
        }
    }

    /// Names of the items that are claimed.
    pub(crate) async fn claimed(&self) -> Result<HashSet<String>, Error> {
        let claims = children_of_all(&self.client, &[&self.paths.claims]).await?;
        Ok(names(claims.into_iter().next().flatten()))
    }

    /// Whether each of the items with these names is gone, in one trip.
    pub(crate) async fn are_gone(&self, names: &[String]) -> Result<Vec<bool>, Error> {
        let looks = names.iter().map(|name| async { self.client.exists(&self.paths.item(name)).await });
        let found = futures_util::future::try_join_all(looks).await?;
        Ok(found.into_iter().map(|item| item.is_none()).collect())
    }

    /// Makes a listing of the folder's children. Those that are no items are ignored, and reported once.
    pub(crate) fn listing(&self, folder: Option<Children>, claimed: HashSet<String>) -> Listing {
        let Some(Children { names, stat, .. }) = folder else {
            return Listing { folder: 0, items: Vec::new(), claimed };
        };
        let count = names.len();
        let items: Vec<_> = names.into_iter().filter_map(|name| self.paths.parse(name)).collect();
        if items.len() < count && !self.reported.swap(true, Ordering::Relaxed) {
            let foreign = count - items.len();
            tracing::warn!(path = %self.path, foreign, "the queue has children that are no items: ignored");
        }
        Listing { folder: stat.czxid, items, claimed }
    }

    /// Largest item in bytes.
    pub(crate) fn max_item(&self) -> usize {
        self.client.max_request().saturating_sub(FIELDS + 2 * self.path.len())
    }

    /// The node's data for an item.
    pub(crate) fn frame(&self, item: &Bytes) -> Result<Bytes, PutError> {
        let limit = self.max_item();
        let framed = (item.len() <= limit).then(|| self.paths.frame(item, 0)).flatten();
        framed.ok_or_else(|| Error::too_large("put", item.len(), limit).at(&self.path).into())
    }

    /// Puts all of `nodes` in one step, or none.
    pub(crate) async fn put(&self, nodes: &[Bytes], place: Place, mode: CreateMode) -> Result<(), PutError> {
        self.takes(nodes.len()).await?;
        let mut round = 1;
        loop {
            let transaction = self.add(self.client.transaction(), nodes, place, mode);
            // Exact: after a lost reply a second put is safe only if the first one cannot be applied any more
            // (decision 11).
            match transaction.commit_exactly().await {
                Ok(results) => {
                    if let Some(TransactionResult::Created(last)) =
                        results.as_ref().and_then(|all| all.last())
                    {
                        self.note_number(&last.path);
                    }
                    tracing::debug!(path = %self.path, items = nodes.len(), "items put");
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::NoNode && round < ROUNDS => {
                    Box::pin(ensure_folder(&self.client, &self.paths.items)).await?;
                    round += 1;
                }
                Err(error) if planted!(PutRetriedOnAbsence) && error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Adds the creates of `nodes` to a transaction.
    pub(crate) fn add(
        &self,
        transaction: Transaction,
        nodes: &[Bytes],
        place: Place,
        mode: CreateMode,
    ) -> Transaction {
        let path = self.paths.new_item(place.priority, place.due);
        nodes.iter().fold(transaction, |transaction, node| transaction.create(&path, node.clone(), mode))
    }

    /// Moves the item that is held by `hold` to another place, in one step, with its number of deliveries.
    pub(crate) async fn move_to(
        &self,
        operation: &'static str,
        hold: Hold,
        name: &str,
        node: &Bytes,
        deliveries: Option<u32>,
        place: Place,
    ) -> Result<(), Error> {
        let node = self.moved(node, deliveries);
        let put = self.add(self.client.transaction(), &[node], place, CreateMode::PersistentSequential);
        hold.end_with(operation, &[self.paths.item(name)], put).await.map(drop)
    }

    /// Gives the item that is held by `hold` back to its place, in one step, with its number of deliveries.
    /// It is handed out from the time `until` on.
    pub(crate) async fn delay(
        &self,
        hold: Hold,
        name: &str,
        node: &Bytes,
        deliveries: Option<u32>,
        until: u64,
    ) -> Result<(), Error> {
        let path = self.paths.returned_item(name, until).unwrap_or_else(|| self.paths.item(name));
        let put =
            self.client.transaction().create(&path, self.moved(node, deliveries), CreateMode::Persistent);
        hold.end_with("give back", &[self.paths.item(name)], put).await.map(drop)
    }

    /// Data of the node that replaces `node`, of an item that was handed out so many times.
    fn moved(&self, node: &Bytes, deliveries: Option<u32>) -> Bytes {
        let base = deliveries.map_or(0, |count| i32::try_from(count).unwrap_or(i32::MAX));
        let framed = self.paths.unframe(node).ok().and_then(|(_, item)| self.paths.frame(&item, base));
        framed.unwrap_or_else(|| node.clone())
    }

    /// Looks whether there are numbers and room for `more` items.
    pub(crate) async fn takes(&self, more: usize) -> Result<(), PutError> {
        self.has_numbers().await?;
        self.has_room(more).await
    }

    async fn has_numbers(&self) -> Result<(), PutError> {
        if self.exhausted.load(Ordering::Acquire) {
            let folder = self.client.exists(&self.paths.items).await?;
            if folder.is_some_and(|folder| is_exhausted(children_ever(&folder))) {
                return Err(PutError::SequenceExhausted);
            }
            // The queue was reset, perhaps by another process.
            self.exhausted.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Looks whether `more` items fit in.
    async fn has_room(&self, more: usize) -> Result<(), PutError> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        if self.room.take(more) {
            return Ok(());
        }
        let length = self.length().await?;
        if length.saturating_add(more) > capacity {
            return Err(PutError::Full { length, capacity });
        }
        self.room.seen(capacity - length - more);
        Ok(())
    }

    /// Number of items.
    pub(crate) async fn length(&self) -> Result<usize, Error> {
        Ok(self.client.exists(&self.paths.items).await?.map_or(0, |folder| folder.num_children))
    }

    /// Forgets that numbers were nearly used up: they begin anew.
    pub(crate) fn numbers_begin_anew(&self) {
        self.exhausted.store(false, Ordering::Release);
    }

    /// Looks at the number that the servers gave to the item at `path`.
    fn note_number(&self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number = self.paths.parse(name.to_owned()).map_or(-1, |item| item.number);
        if is_in_danger_zone(number) {
            self.exhausted.store(true, Ordering::Release);
        }
        if number >= WARN_FROM {
            tracing::warn!(path = %self.path, number, "less than half of the queue's numbers is left");
        }
    }
}

fn names(claims: Option<Children>) -> HashSet<String> {
    claims.map(|claims| claims.names.into_iter().collect()).unwrap_or_default()
}

/// True when the number of the next item would be among the last: servers number items by how many children
/// their folder ever had.
fn is_exhausted(children_ever: u32) -> bool {
    i32::try_from(children_ever).map_or(true, is_in_danger_zone)
}

/// Number of children that a node ever had. For an item that is the number of hand-outs that were counted:
/// each made and deleted one child.
pub(crate) fn children_ever(node: &Stat) -> u32 {
    // `cversion` counts children that came and children that went, so half of the sum is the number of claims
    // (decision 8).
    let children = u32::try_from(node.num_children).unwrap_or(u32::MAX);
    node.cversion.cast_unsigned().wrapping_add(children) / 2
}

#[cfg(test)]
mod tests {
    use super::is_exhausted;
    use crate::queue::Queue;
    use docent_core::Client;
    use std::sync::atomic::Ordering;

    #[test]
    fn numbers_are_nearly_used_up_when_the_next_one_would_be_among_the_last() {
        assert!(!is_exhausted(0) && !is_exhausted(2_146_435_071));
        assert!(is_exhausted(2_146_435_072) && is_exhausted(2_147_483_648) && is_exhausted(u32::MAX));
    }

    #[tokio::test]
    async fn a_number_among_the_last_is_noted() {
        let client = Client::builder("127.0.0.1:1").build().unwrap();
        let queue = Queue::<u64>::new(&client, "/queue").unwrap();
        queue.store.items.note_number("/queue/items/item-2146435071");
        assert!(!queue.store.items.exhausted.load(Ordering::Acquire));
        queue.store.items.note_number("/queue/items/item-2146435072");
        assert!(queue.store.items.exhausted.load(Ordering::Acquire));
    }
}
