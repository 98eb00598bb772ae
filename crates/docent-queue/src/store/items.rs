use super::ensure_folder;
use crate::error::PutError;
use crate::layout::{Paths, in_order, is_in_danger_zone, number};
use bytes::Bytes;
use docent_core::{Client, CreateMode, Error, ErrorKind, Stat, TransactionResult, planted};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a request besides an item's bytes and its path, and besides the header that is written when it
/// goes to the dead letters.
const FIELDS: usize = 4096;

/// Number from which on a warning is due: half of the numbers are used up.
const WARN_FROM: i32 = 1 << 30;

/// How often the folder is made anew before that is an error.
const ROUNDS: u32 = 3;

/// Items of a queue at the servers, to list and to put, without regard to what they are.
pub(crate) struct Items {
    client: Client,
    path: String,
    paths: Arc<Paths>,
    /// How many items there may be.
    capacity: Option<usize>,
    /// Set when numbers are nearly used up.
    exhausted: AtomicBool,
    /// Set when children that are no items were reported.
    reported: AtomicBool,
}

impl Items {
    pub(super) fn new(client: &Client, path: &str, paths: &Arc<Paths>, capacity: Option<usize>) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
            paths: Arc::clone(paths),
            capacity,
            exhausted: AtomicBool::new(false),
            reported: AtomicBool::new(false),
        }
    }

    /// Names of the items, first in first. A queue that does not exist is empty.
    pub(crate) async fn list(&self) -> Result<Vec<String>, Error> {
        match self.client.children(&self.paths.items).await {
            Ok(children) => Ok(self.among(children.names)),
            Err(error) if error.kind() == ErrorKind::NoNode => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The items among the children of the folder. Others are ignored, and reported once.
    pub(crate) fn among(&self, names: Vec<String>) -> Vec<String> {
        let count = names.len();
        let items = in_order(names, self.paths.prefix());
        if items.len() < count && !self.reported.swap(true, Ordering::Relaxed) {
            let foreign = count - items.len();
            tracing::warn!(path = %self.path, foreign, "the queue has children that are no items: ignored");
        }
        items
    }

    /// Largest item in bytes.
    pub(crate) fn max_item(&self) -> usize {
        self.client.max_request().saturating_sub(FIELDS + 2 * self.path.len())
    }

    /// The nodes' data for items.
    pub(crate) fn frames(&self, items: &[Bytes]) -> Result<Vec<Bytes>, PutError> {
        let limit = self.max_item();
        let frame = |item: &Bytes| {
            let too_large = PutError::TooLarge { size: item.len(), limit };
            if item.len() > limit {
                return Err(too_large);
            }
            self.paths.frame(item).ok_or(too_large)
        };
        items.iter().map(frame).collect()
    }

    /// Puts all of `nodes` in one step, or none.
    pub(crate) async fn put(&self, nodes: &[Bytes], mode: CreateMode) -> Result<(), PutError> {
        if self.exhausted.load(Ordering::Acquire) {
            let folder = self.client.exists(&self.paths.items).await?;
            if folder.is_some_and(|folder| is_exhausted(children_ever(&folder))) {
                return Err(PutError::SequenceExhausted);
            }
            // The queue was reset, perhaps by another process.
            self.exhausted.store(false, Ordering::Release);
        }
        self.has_room(nodes.len()).await?;
        let mut round = 1;
        loop {
            let create = |transaction: docent_core::Transaction, node: &Bytes| {
                transaction.create(&self.paths.new_item(), node.clone(), mode)
            };
            let transaction = nodes.iter().fold(self.client.transaction(), create);
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
                    ensure_folder(&self.client, &self.paths.items).await?;
                    round += 1;
                }
                Err(error) if planted!(PutRetriedOnAbsence) && error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn has_room(&self, more: usize) -> Result<(), PutError> {
        let Some(capacity) = self.capacity else { return Ok(()) };
        let length = self.length().await?;
        if length.saturating_add(more) > capacity {
            return Err(PutError::Full { length, capacity });
        }
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
        let number = number(name, self.paths.prefix()).unwrap_or(-1);
        if is_in_danger_zone(number) {
            self.exhausted.store(true, Ordering::Release);
        }
        if number >= WARN_FROM {
            tracing::warn!(path = %self.path, number, "less than half of the queue's numbers is left");
        }
    }
}

/// True when the number of the next item would be among the last: servers number items by how many children
/// their folder ever had.
fn is_exhausted(children_ever: u32) -> bool {
    i32::try_from(children_ever).map_or(true, is_in_danger_zone)
}

/// Number of children that a node ever had. For an item that is the number of its claims: each claim is one
/// child that came, and when it ended one that went.
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
