use crate::layout::QueueLayout;
use crate::store::{ItemPlace, Store};
use docent_core::Error;
use std::time::Duration;

/// Options of an item that is put: when it may be handed out, and before which other items.
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
    /// Creates the options of a plain put: no delay, and priority 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the delay before the item may be handed out. The resulting time is written into the item's name
    /// by this process's clock and compared with the clocks of consumers, so the clocks must agree as
    /// precisely as the delay requires.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the priority. Items with a lower number are handed out first. Default 0. An item with a high
    /// number waits as long as items with lower numbers arrive.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Returns the place of an item that is put now.
    ///
    /// # Errors
    /// `InvalidInput` in a layout whose names cannot contain a delay or a priority.
    pub(crate) fn place_in(&self, store: &Store) -> Result<ItemPlace, Error> {
        if *self != Self::default() && store.paths.layout != QueueLayout::Native {
            let rule = "an item with a delay or a priority must be put into a queue of the native layout";
            return Err(Error::invalid_input("put", rule));
        }
        let delay = u64::try_from(self.delay.as_millis()).unwrap_or(u64::MAX);
        let due = (!self.delay.is_zero()).then(|| store.time_of_day().saturating_add(delay));
        Ok(ItemPlace { priority: self.priority, due })
    }
}
