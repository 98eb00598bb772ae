use super::Queue;
use crate::consumer::IDLE;
use crate::layout::{Paths, QueueLayout};
use crate::store::{Limits, MOST, Store};
use crate::telemetry::KIND;
use docent_codec::Codec;
use docent_core::recipe::{Line, NodePath};
use docent_core::{Client, Error};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Shortest and longest delay of an item that is given back.
const REDELIVERY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(60));
/// How long an item that cannot be decoded is left to other consumers.
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

    /// The nodes' layout. Default [`QueueLayout::Native`].
    pub fn layout(mut self, layout: QueueLayout) -> Self {
        self.layout = layout;
        self
    }

    /// How many items the queue may have, items in work included: a put beyond that fails with
    /// [`PutError::Full`](crate::PutError::Full). Default 10,000. It is looked up before a put, so that
    /// producers who put at the same time may exceed it, each by one put; where there is room for more than
    /// 64 items, each by at most 16, which it puts within half a second without looking again.
    pub fn capacity(mut self, items: usize) -> Self {
        self.limits.capacity = Some(items);
        self
    }

    /// No limit but the servers' memory, and one trip less for each put.
    pub fn unbounded(mut self) -> Self {
        self.limits.capacity = None;
        self
    }

    /// How often an item is handed out before it goes to the dead letters. Default 16. It is counted before a
    /// consumer gets the item, so that one that dies over it counts.
    pub fn max_deliveries(mut self, deliveries: u32) -> Self {
        self.limits.max_deliveries = Some(deliveries);
        self
    }

    /// An item is handed out until it is acknowledged, however often that is.
    pub fn unlimited_deliveries(mut self) -> Self {
        self.limits.max_deliveries = None;
        self
    }

    /// Delay of an item that is given back, by [`nack`](crate::Delivery::nack) or by a drop: `shortest` for
    /// one that was handed out once, twice that after the next time, and so on up to `longest`. Default from
    /// 200 ms to a minute. Without a count, in Curator's layout, it is always `shortest`.
    pub fn redelivery_delay(mut self, shortest: Duration, longest: Duration) -> Self {
        self.limits.redelivery = (shortest, longest);
        self
    }

    /// How long a consumer leaves an item that it cannot decode to others before it moves the item to the
    /// dead letters. Default five minutes: in a rolling upgrade older consumers meet items that only newer
    /// ones understand. The time counts while others could take the item, and starts again after each
    /// hand-out. Keep it above the session timeout. With zero the item goes to the dead letters at once. Each
    /// process keeps its own time.
    pub fn undecodable_after(mut self, patience: Duration) -> Self {
        self.limits.undecodable_after = patience;
        self
    }

    /// How many items [`Queue::deliveries`] claims in one step. Default 1. The effects are explained there.
    pub fn prefetch(mut self, items: usize) -> Self {
        self.limits.prefetch = items;
        self
    }

    /// Where the dead letters are. Default as [`layout`](Self::layout) says.
    pub fn dead_letters(mut self, path: impl Into<String>) -> Self {
        self.dead_letters = Some(path.into());
        self
    }

    /// One consumer at a time: an item is handed out after its predecessor was acknowledged or became a dead
    /// letter, or first again after it was given back. A consumer that cannot decode the first item takes no
    /// other one, and releases the lock for those that can. All consumers of the queue need the same setting.
    ///
    /// This is also the mode for ephemeral items ([`Queue::put_ephemeral`]). A delivery costs one write more
    /// than otherwise, with the item's bytes.
    pub fn ordered(mut self) -> Self {
        self.ordered = true;
        self
    }

    /// The queue's name in metrics, with the feature `metrics` of `docent`. Without one nothing of this
    /// queue is measured: a path is never a label. A process in which somebody takes tells, as it last saw
    /// them, `docent_queue_depth`, the number of items, and `docent_queue_head_age_seconds`, for how long
    /// the item that was claimed last had been in the queue.
    pub fn metrics_name(mut self, name: impl Into<String>) -> Self {
        self.metrics_name = Some(name.into());
        self
    }

    /// The queue.
    ///
    /// # Errors
    /// `InvalidInput` when a path breaks a rule, and when a capacity, a limit of deliveries or a prefetch is
    /// 0 or too large.
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
        // Errors name the paths as they were given.
        NodePath::new("queue", self.path.as_str())?;
        if let QueueLayout::Curator { lock_path } = &self.layout {
            NodePath::new("queue", lock_path.as_str())?;
            if *lock_path == self.path {
                return invalid(format!("the lock path {lock_path:?} must not be the queue's path"));
            }
        }
        let mut paths = Paths::new(&self.path, self.layout);
        if let Some(dead) = self.dead_letters {
            paths.dead = NodePath::new("queue", dead)?.into();
        }
        let idle = Line::new(&self.client, &paths.idle, &KIND, IDLE)?;
        let lock = self.ordered.then(|| Line::new(&self.client, &paths.lock, &KIND, "lock-")).transpose()?;
        let store = Store::new(self.client, self.path, paths, idle, lock, self.limits, self.metrics_name);
        Ok(Queue::of(Arc::new(store), self.codec))
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
