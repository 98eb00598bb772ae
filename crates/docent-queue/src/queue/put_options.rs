use crate::layout::QueueLayout;
use crate::store::{Place, Store};
use docent_core::Error;
use std::time::Duration;

/// Options of an item that is put: when it may be handed out, and before which others.
///
/// ```
/// use docent_queue::PutOptions;
/// use std::time::Duration;
///
/// let retry_later = PutOptions::new().delay(Duration::from_secs(30)).priority(10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "options do nothing until they are used by a put"]
pub struct PutOptions {
    delay: Duration,
    priority: i32,
}

impl PutOptions {
    /// As a plain put: no delay, and priority 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The item is handed out after `delay`, not before. The time is written into the item's name by this
    /// process's clock, and compared with those of consumers: their clocks must agree as far as it matters.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Items of a lower priority are handed out before those of a higher one. Default 0. An item of a high
    /// number waits for as long as others of lower ones come.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Place of an item that is put now.
    ///
    /// # Errors
    /// `InvalidInput` in a layout whose names say nothing about it.
    pub(crate) fn place_in(&self, store: &Store) -> Result<Place, Error> {
        if *self != Self::default() && store.paths.layout != QueueLayout::Native {
            let rule = "an item with a delay or a priority must be put into a queue of the native layout";
            return Err(Error::invalid_input("put", rule));
        }
        let delay = u64::try_from(self.delay.as_millis()).unwrap_or(u64::MAX);
        let due = (!self.delay.is_zero()).then(|| store.time_of_day().saturating_add(delay));
        Ok(Place { priority: self.priority, due })
    }
}
