use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Faults of one link's transport.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Nothing passes.
    pub(crate) frozen: bool,
    /// Time that bytes are on their way, each way.
    pub(crate) delay: Duration,
    /// Most bytes that pass in a second, each way.
    pub(crate) bytes_per_second: Option<NonZeroU32>,
}

impl Shape {
    /// True when bytes pass as they come.
    pub(super) fn is_free(self) -> bool {
        self == Self::default()
    }
}

/// The present shape of a link, which its task and the handles to it share.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedShape(Arc<Mutex<Shape>>);

impl SharedShape {
    pub(crate) fn get(&self) -> Shape {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Shape)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
