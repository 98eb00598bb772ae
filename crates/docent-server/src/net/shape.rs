use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Faults of a link's transport.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Whether nothing passes.
    pub(crate) frozen: bool,
    /// Delay of bytes in each direction.
    pub(crate) delay: Duration,
    /// Maximum bytes per second in each direction.
    pub(crate) bytes_per_second: Option<NonZeroU32>,
}

impl Shape {
    /// Returns whether bytes pass without restriction.
    pub(super) fn is_free(self) -> bool {
        self == Self::default()
    }
}

/// The current shape of a link, shared by its task and the handles to it.
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
