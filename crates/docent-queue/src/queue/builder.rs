use super::Queue;
use crate::consumer::IDLE;
use crate::layout::{Paths, QueueLayout};
use crate::store::{Limits, MOST, Store};
use crate::telemetry::{KIND, QueueGauges};
use docent_codec::Codec;
use docent_core::recipe::{Line, NodePath};
use docent_core::{Client, Error};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Shortest and longest delay of an item that is given back.
const REDELIVERY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));
/// Time for which an item that cannot be decoded is left to other consumers.
const UNDECODABLE_AFTER: Duration = Duration::from_secs(5 * 60);

const CAPACITY: usize = 10_000;
const MAX_DELIVERIES: u32 = 16;

/// Settings of a [`Queue`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct QueueBuilder<T> {
    client: Client,
    path: String,
    codec: Arc<dyn Codec<T>>,
    layout: QueueLayout,
    limits: Limits,
    dead_letters: Option<String>,
    ordered: bool,
    metrics_name: Option<String>,
}

impl<T> Clone for QueueBuilder<T> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            path: self.path.clone(),
            codec: Arc::clone(&self.codec),
            layout: self.layout.clone(),
            limits: self.limits,
            dead_letters: self.dead_letters.clone(),
            ordered: self.ordered,
            metrics_name: self.metrics_name.clone(),
        }
    }
}

impl<T: 'static> QueueBuilder<T> {
    pub(super) fn new(client: &Client, path: &str, codec: Arc<dyn Codec<T>>) -> Self {
        Self {
            client: client.clone(),
            path: path.to_owned(),
            codec,
            layout: QueueLayout::default(),
            limits: Limits {
                capacity: Some(CAPACITY),
                max_deliveries: Some(MAX_DELIVERIES),
                prefetch: 1,
                undecodable_after: UNDECODABLE_AFTER,
                redelivery: REDELIVERY,
            },
            dead_letters: None,
            ordered: false,
            metrics_name: None,
        }
    }

    /// Sets the nodes' layout. Default [`QueueLayout::Native`].
    pub fn layout(mut self, layout: QueueLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets the maximum number of items in the queue, including those that consumers work on. A put beyond
    /// the limit fails with [`PutError::Full`](crate::PutError::Full). Default 10,000. The number is read
    /// before a put, so concurrent producers may exceed the limit, each by one put. If there is room for more
    /// than 64 items, a producer may put up to 16 items within half a second without reading the number
    /// again.
    pub fn capacity(mut self, items: usize) -> Self {
        self.limits.capacity = Some(items);
        self
    }

    /// Removes the limit on the number of items, which is then bounded only by the servers' memory. Saves one
    /// round trip for each put.
    pub fn unbounded(mut self) -> Self {
        self.limits.capacity = None;
        self
    }

    /// Sets how often an item is handed out before it is moved to the dead letters. Default 16. A delivery is
    /// counted before the consumer gets the item, so deliveries to consumers that crash are counted as well.
    pub fn max_deliveries(mut self, deliveries: u32) -> Self {
        self.limits.max_deliveries = Some(deliveries);
        self
    }

    /// Removes the limit on deliveries: an item is handed out until it is acknowledged.
    pub fn unlimited_deliveries(mut self) -> Self {
        self.limits.max_deliveries = None;
        self
    }

    /// Sets the delay of an item that is given back by [`nack`](crate::Delivery::nack) or by dropping its
    /// delivery. The delay is `shortest` after the first delivery and doubles with each further one, up to
    /// `longest`. Default 200 ms to one minute. In Curator's layout, which does not count deliveries, the
    /// delay is always `shortest`.
    pub fn redelivery_delay(mut self, shortest: Duration, longest: Duration) -> Self {
        self.limits.redelivery = (shortest, longest);
        self
    }

    /// Sets how long a consumer leaves an item that it cannot decode to other consumers, before it moves the
    /// item to the dead letters. Default five minutes: during a rolling upgrade, older consumers meet items
    /// that only newer ones can decode. The time runs while other consumers could take the item, and restarts
    /// after each delivery. It should exceed the session timeout. With zero, the item is moved to the dead
    /// letters immediately. Each process measures its own time.
    ///
    /// Unless the time is zero, items of another program are not moved: [`Queue::take`] returns `InvalidData`
    /// once ten items in a row have another format than those of this layout.
    pub fn undecodable_after(mut self, patience: Duration) -> Self {
        self.limits.undecodable_after = patience;
        self
    }

    /// Sets how many items [`Queue::deliveries`] claims in one step. Default 1. See there for the effects.
    pub fn prefetch(mut self, items: usize) -> Self {
        self.limits.prefetch = items;
        self
    }

    /// Sets the folder of the dead letters. The default depends on the [`layout`](Self::layout).
    pub fn dead_letters(mut self, path: impl Into<String>) -> Self {
        self.dead_letters = Some(path.into());
        self
    }

    /// Allows one consumer at a time. An item is handed out only after its predecessor was acknowledged or
    /// became a dead letter; an item that is given back is handed out first again. A consumer that cannot
    /// decode the first item takes no other item, and releases the lock for consumers that can. All consumers
    /// of the queue need the same setting.
    ///
    /// This mode is required for ephemeral items ([`Queue::put_ephemeral`]). A delivery costs one additional
    /// write with the item's bytes.
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// Sets the queue's name in metrics, with the feature `metrics` of `docent`. Without a name, this queue
    /// has no metrics: a path is never used as a label. A process that takes items reports two gauges, as of
    /// its last listing or claim:
    ///
    /// - `docent_queue_depth`: the number of items;
    /// - `docent_queue_head_age_seconds`: how long the last claimed item had been in the queue.
    pub fn metrics_name(mut self, name: impl Into<String>) -> Self {
        self.metrics_name = Some(name.into());
        self
    }

    /// Builds the queue.
    ///
    /// # Errors
    /// `InvalidInput` if a path breaks a rule, or if a capacity, a limit of deliveries or a prefetch is 0 or
    /// too large.
    pub fn build(self) -> Result<Queue<T>, Error> {
        let invalid = |detail: String| Err(Error::invalid_input("queue", detail));
        if self.limits.capacity == Some(0) {
            return invalid("a capacity of 0 must be at least 1".to_owned());
        }
        if self.limits.max_deliveries == Some(0) {
            return invalid("a limit of 0 deliveries must be at least 1".to_owned());
        }
        if !(1..=MOST).contains(&self.limits.prefetch) {
            return invalid(format!("a prefetch of {} must be from 1 to {MOST}", self.limits.prefetch));
        }
        let (shortest, longest) = self.limits.redelivery;
        if shortest > longest {
            return invalid(format!(
                "a shortest delay of {shortest:?} must not be above the longest, {longest:?}"
            ));
        }
        if self.ordered && self.layout != QueueLayout::Native {
            return invalid("the ordered mode must go with the native layout".to_owned());
        }
        // Validates the paths first, so that errors name them as they were passed.
        NodePath::of_recipe(&self.client, "queue", self.path.as_str())?;
        if let QueueLayout::Curator { lock_path } = &self.layout {
            NodePath::of_recipe(&self.client, "queue", lock_path.as_str())?;
            if *lock_path == self.path {
                return invalid(format!("the lock path {lock_path:?} must not be the queue's path"));
            }
        }
        let mut paths = Paths::new(&self.path, self.layout);
        if let Some(dead) = self.dead_letters {
            paths.dead = NodePath::of_recipe(&self.client, "queue", dead)?.into();
        }
        let idle = Line::new(&self.client, &paths.idle, &KIND, IDLE)?;
        let lock = self.ordered.then(|| Line::new(&self.client, &paths.lock, &KIND, "lock-")).transpose()?;
        let gauges = QueueGauges::new(&self.client, self.metrics_name.as_deref());
        let store = Store::new(self.client, self.path, paths, idle, lock, self.limits, gauges);
        Ok(Queue { store: Arc::new(store), codec: self.codec })
    }
}

impl<T> fmt::Debug for QueueBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("path", &self.path)
            .field("layout", &self.layout)
            .field("limits", &self.limits)
            .field("ordered", &self.ordered)
            .finish_non_exhaustive()
    }
}
