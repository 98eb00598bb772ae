use super::{ClaimedItem, children_ever};
use crate::error::PutError;
use crate::layout::{ItemName, Paths, is_in_danger_zone};
use bytes::Bytes;
use docent_core::planted;
use docent_core::recipe::{children_of_all, ensure_node, full_path};
use docent_core::{Children, Client, CreateMode, Error, ErrorKind, Transaction, TransactionResult};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of a request other than the item's bytes and its path, and other than the header that is added when
/// the item is moved to the dead letters.
const FIELDS: usize = 4096;

/// First number for which a warning is logged: half of the numbers are used.
const WARN_FROM: i32 = 1 << 30;

/// Maximum number of attempts to create the folder during a put.
const ROUNDS: u32 = 3;

/// Time for which a reading of the queue's length is used.
const ROOM_FRESH: Duration = Duration::from_millis(500);
/// Divisor of the queue's room: a process may use up one part, of at most `ROOM_MOST` items, without reading
/// the length again.
const ROOM_PART: usize = 64;
const ROOM_MOST: usize = 16;

/// Listing of a queue: its items, and which of them are claimed.
pub(crate) struct Listing {
    /// Transaction that created the folder of the items; 0 if there is no folder.
    pub(crate) folder: i64,
    pub(crate) items: Vec<ItemName>,
    /// Names of the claimed items.
    pub(crate) claimed: HashSet<String>,
}

/// Place of an item that is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ItemPlace {
    pub(crate) priority: i32,
    /// Time from which the item may be handed out, in milliseconds since the Unix epoch.
    pub(crate) due: Option<u64>,
}

/// Items of a queue at the servers, in encoded form, to list and to put.
pub(crate) struct Items {
    client: Client,
    path: String,
    paths: Arc<Paths>,
    /// Maximum number of items.
    capacity: Option<usize>,
    room: Room,
    /// Whether the sequence numbers are nearly used up.
    exhausted: AtomicBool,
    /// Whether children that are not items were reported.
    reported: AtomicBool,
    /// Whether another queue with the same lock path was reported.
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

    /// Lists the items and the claims, in one round trip. A queue that does not exist is empty.
    pub(crate) async fn list(&self) -> Result<Listing, Error> {
        // The order matters: a claim that is missing from the listing did not exist when the items were
        // listed.
        let folders = [&*self.paths.items, &self.paths.claims];
        let mut listed = children_of_all(&self.client, &folders).await?.into_iter();
        let (items, claims) = (listed.next().flatten(), listed.next().flatten());
        Ok(self.listed(items, claims))
    }

    /// Lists like [`list`](Self::list), and also returns the names of the places in the line of idle
    /// consumers.
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
            // Event: Two queues in Curator's layout use the same lock path. Items with the same number
            // exclude each other, so consumers wait without need.
            // Action: Give each queue its own lock path.
            tracing::warn!(target: "docent::queue", client = %self.client.label(), path = %full_path(&self.client, path), lock_path = %full_path(&self.client, lock_path), %other, "another queue uses the same lock path; items with the same number exclude each other");
        }
    }

    /// Returns the names of the claimed items.
    pub(crate) async fn claimed(&self) -> Result<HashSet<String>, Error> {
        let claims = children_of_all(&self.client, &[&self.paths.claims]).await?;
        Ok(names(claims.into_iter().next().flatten()))
    }

    /// Returns for each name whether the item was deleted, in one round trip.
    pub(crate) async fn are_deleted(&self, names: &[String]) -> Result<Vec<bool>, Error> {
        let checks = names.iter().map(|name| async { self.client.exists(&self.paths.item(name)).await });
        let stats = futures_util::future::try_join_all(checks).await?;
        Ok(stats.into_iter().map(|item| item.is_none()).collect())
    }

    /// Creates a listing from the folder's children. Children that are not items are ignored, and reported
    /// once.
    pub(crate) fn listing(&self, folder: Option<Children>, claimed: HashSet<String>) -> Listing {
        let Some(Children { names, stat, .. }) = folder else {
            return Listing { folder: 0, items: Vec::new(), claimed };
        };
        let count = names.len();
        let items: Vec<_> = names.into_iter().filter_map(|name| self.paths.parse(name)).collect();
        if items.len() < count && !self.reported.swap(true, Ordering::Relaxed) {
            let foreign = count - items.len();
            // Event: The folder of a queue contains nodes that are not items of this queue; the field
            // `foreign` has their number. They are ignored. This is logged once per queue handle.
            // Action: Find out which program writes to the queue's path, or whether consumers use another
            // layout.
            tracing::warn!(target: "docent::queue", client = %self.client.label(), path = %full_path(&self.client, &self.path), foreign, "the queue's folder contains nodes that are not items; ignoring them");
        }
        Listing { folder: stat.czxid, items, claimed }
    }

    /// Returns the maximum size of an item in bytes.
    pub(crate) fn max_item(&self) -> usize {
        self.client.max_request().saturating_sub(FIELDS + 2 * self.path.len())
    }

    /// Returns the node's data for an item.
    pub(crate) fn frame(&self, item: &Bytes) -> Result<Bytes, PutError> {
        let limit = self.max_item();
        let framed = (item.len() <= limit).then(|| self.paths.frame(item, 0)).flatten();
        framed.ok_or_else(|| Error::too_large("put", item.len(), limit).at(&self.path).into())
    }

    /// Puts all of `nodes` in one step, or none.
    pub(crate) async fn put(
        &self,
        nodes: &[Bytes],
        place: ItemPlace,
        mode: CreateMode,
    ) -> Result<(), PutError> {
        self.check_put(nodes.len()).await?;
        let mut round = 1;
        loop {
            let transaction = self.add(self.client.transaction(), nodes, place, mode);
            // An exact write: after a lost reply, a second put is safe only if the first one can no longer be
            // applied (decision 11).
            match transaction.commit_exactly().await {
                Ok(results) => {
                    if let Some(TransactionResult::Created(last)) =
                        results.as_ref().and_then(|all| all.last())
                    {
                        self.note_number(&last.path);
                    }
                    // Event: The client put items into a queue; the field `items` has their number.
                    tracing::debug!(target: "docent::queue", client = %self.client.label(), path = %full_path(&self.client, &self.path), items = nodes.len(), "put items into the queue");
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
        place: ItemPlace,
        mode: CreateMode,
    ) -> Transaction {
        let path = self.paths.new_item(place.priority, place.due);
        nodes.iter().fold(transaction, |transaction, node| transaction.create(&path, node.clone(), mode))
    }

    /// Moves a claimed item to another place, in one step. The item keeps its number of deliveries.
    pub(crate) async fn move_to(
        &self,
        operation: &'static str,
        item: ClaimedItem,
        place: ItemPlace,
    ) -> Result<(), Error> {
        let node = self.moved(&item);
        let put = self.add(self.client.transaction(), &[node], place, CreateMode::PersistentSequential);
        item.hold.end_with(operation, &[self.paths.item(&item.name)], put).await.map(drop)
    }

    /// Gives a claimed item back to its place, in one step. The item keeps its number of deliveries, and may
    /// be handed out from the time `until`.
    pub(crate) async fn delay(&self, item: ClaimedItem, until: u64) -> Result<(), Error> {
        let own_path = self.paths.item(&item.name);
        let path = self.paths.returned_item(&item.name, until).unwrap_or_else(|| own_path.clone());
        let put = self.client.transaction().create(&path, self.moved(&item), CreateMode::Persistent);
        item.hold.end_with("give back", &[own_path], put).await.map(drop)
    }

    /// Returns the data of the node that replaces the node of `item`, with the item's number of deliveries.
    fn moved(&self, item: &ClaimedItem) -> Bytes {
        let count = item.deliveries(&self.paths).unwrap_or(0);
        let moved = self.paths.with_base(&item.node.data, |_| i32::try_from(count).unwrap_or(i32::MAX));
        moved.unwrap_or_else(|| item.node.data.clone())
    }

    /// Checks whether there are sequence numbers and room for `more` items.
    pub(crate) async fn check_put(&self, more: usize) -> Result<(), PutError> {
        self.has_numbers().await?;
        self.has_room(more).await
    }

    async fn has_numbers(&self) -> Result<(), PutError> {
        if self.exhausted.load(Ordering::Acquire) {
            let folder = self.client.exists(&self.paths.items).await?;
            if folder.is_some_and(|folder| is_exhausted(children_ever(&folder))) {
                return Err(PutError::SequenceExhausted);
            }
            // The queue was reset, possibly by another process.
            self.exhausted.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Checks whether the queue has room for `more` items.
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

    /// Returns the number of items.
    pub(crate) async fn length(&self) -> Result<usize, Error> {
        Ok(self.client.exists(&self.paths.items).await?.map_or(0, |folder| folder.num_children))
    }

    /// Records that the sequence numbers start again, so that they are no longer nearly used up.
    pub(crate) fn numbers_restart(&self) {
        self.exhausted.store(false, Ordering::Release);
    }

    /// Checks the number that the servers gave to the item at `path`.
    fn note_number(&self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number = self.paths.parse(name.to_owned()).map_or(-1, |item| item.number);
        if is_in_danger_zone(number) {
            self.exhausted.store(true, Ordering::Release);
        }
        if number >= WARN_FROM {
            // Event: More than half of the sequence numbers of a queue are used. Once they are nearly used
            // up, puts fail.
            // Action: Plan a `reset` of the queue at a time when it is empty.
            tracing::warn!(target: "docent::queue", client = %self.client.label(), path = %full_path(&self.client, &self.path), number, "more than half of the queue's sequence numbers are used");
        }
    }
}

/// Room that this process found in the queue. If the room is ample, the process does not read the length
/// before each put.
#[derive(Debug, Default)]
struct Room(Mutex<Option<(usize, Instant)>>);

impl Room {
    /// Takes room for `items`. Returns false if the length has to be read.
    fn take(&self, items: usize) -> bool {
        let mut room = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *room {
            Some((remaining, seen)) if *remaining >= items && seen.elapsed() < ROOM_FRESH => {
                *remaining -= items;
                true
            }
            _ => false,
        }
    }

    /// Records that there is room for `room` items.
    fn seen(&self, room: usize) {
        let remaining = (room / ROOM_PART).min(ROOM_MOST);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((remaining, Instant::now()));
    }
}

fn names(claims: Option<Children>) -> HashSet<String> {
    claims.map(|claims| claims.names.into_iter().collect()).unwrap_or_default()
}

/// Returns whether the number of the next item would be among the last. Servers number items by how many
/// children their folder ever had.
fn is_exhausted(children_ever: u32) -> bool {
    i32::try_from(children_ever).map_or(true, is_in_danger_zone)
}

/// Creates a folder like [`ensure_folder`], for a folder that usually exists: a read costs the leader
/// nothing.
pub(crate) async fn ensure_known_folder(client: &Client, path: &str) -> Result<(), Error> {
    match client.exists(path).await? {
        Some(_) => Ok(()),
        None => ensure_folder(client, path).await,
    }
}

/// Creates the folder `path` if it is missing, as a persistent node, so that the numbers of items keep
/// increasing.
pub(crate) async fn ensure_folder(client: &Client, path: &str) -> Result<(), Error> {
    ensure_node(client, path, CreateMode::Persistent).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;

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

    #[test]
    fn one_reading_suffices_for_a_small_part_of_the_room() {
        let room = Room::default();
        assert!(!room.take(1));
        room.seen(ROOM_PART * 2 + 1);
        assert!(room.take(1) && room.take(1) && !room.take(1));
        room.seen(usize::MAX);
        assert!(!room.take(ROOM_MOST + 1) && room.take(ROOM_MOST) && !room.take(1));
        room.seen(ROOM_PART - 1);
        assert!(!room.take(1));
    }
}
