use crate::claims::children_ever;
use crate::error::PutError;
use crate::name::{is_in_danger_zone, number};
use crate::store::Store;
use bytes::Bytes;
use docent_core::{CreateMode, Error, ErrorKind, TransactionResult, planted};
use std::sync::atomic::Ordering;

/// Bytes of a request besides an item's bytes and its path, and besides the header that is written when it
/// goes to the dead letters.
const FIELDS: usize = 4096;

/// Number from which on a warning is due: half of the numbers are used up.
const WARN_FROM: i32 = 1 << 30;

/// How often the folder is made anew before that is an error.
const ROUNDS: u32 = 3;

impl Store {
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
            self.places.frame(item).ok_or(too_large)
        };
        items.iter().map(frame).collect()
    }

    /// Puts all of `nodes` in one step, or none.
    pub(crate) async fn put(&self, nodes: &[Bytes], mode: CreateMode) -> Result<(), PutError> {
        if self.exhausted.load(Ordering::Acquire) {
            let folder = self.client.exists(&self.places.items).await?;
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
                transaction.create(&self.places.new_item(), node.clone(), mode)
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
                    self.ensure_folder(&self.places.items).await?;
                    round += 1;
                }
                Err(error) if planted!(PutRetriedOnAbsence) && error.kind() == ErrorKind::OutcomeUnknown => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn has_room(&self, more: usize) -> Result<(), PutError> {
        let Some(capacity) = self.limits.capacity else { return Ok(()) };
        let length = self.length().await?;
        if length.saturating_add(more) > capacity {
            return Err(PutError::Full { length, capacity });
        }
        Ok(())
    }

    /// Number of items.
    pub(crate) async fn length(&self) -> Result<usize, Error> {
        Ok(self.client.exists(&self.places.items).await?.map_or(0, |folder| folder.num_children))
    }

    /// Looks at the number that the servers gave to the item at `path`.
    fn note_number(&self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number = number(name, self.places.prefix()).unwrap_or(-1);
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
        queue.store.note_number("/queue/items/item-2146435071");
        assert!(!queue.store.exhausted.load(Ordering::Acquire));
        queue.store.note_number("/queue/items/item-2146435072");
        assert!(queue.store.exhausted.load(Ordering::Acquire));
    }
}
