use super::{Cohort, SharedMutex};
use crate::MutexBuilder;
use docent_core::{Client, Error};
use std::sync::Arc;
use std::time::Duration;

/// Default maximum number of times that a ticket is passed on.
const LIMIT: u32 = 100;

/// Default maximum time during which a ticket is passed on.
const SHARE_FOR: Duration = Duration::from_secs(1);

/// Settings of a [`SharedMutex`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SharedMutexBuilder {
    mutex: MutexBuilder,
    limit: u32,
    time: Duration,
}

impl SharedMutexBuilder {
    pub(super) fn new(client: &Client, path: &str) -> Self {
        Self { mutex: MutexBuilder::new(client, path), limit: LIMIT, time: SHARE_FOR }
    }

    /// Sets the maximum number of times that a ticket is passed on to another task; at least 1. Default 100.
    ///
    /// Each shared ticket ahead of a contender in another process delays that contender by at most this many
    /// extra turns, compared with a plain ticket. A high limit favours the tasks of this process, a low limit
    /// the other processes.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the maximum time between the first turn with a ticket and the start of the last turn with the
    /// same ticket. Default 1 s. A turn that has started is not cut short.
    pub fn share_for(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Also waits for contenders of another kind, like [`MutexBuilder::neighbours`].
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.mutex = self.mutex.neighbours(marker);
        self
    }

    /// Builds the mutex.
    ///
    /// # Errors
    /// `InvalidInput` if the limit is 0; otherwise those of [`MutexBuilder::build`].
    pub fn build(self) -> Result<SharedMutex, Error> {
        let Self { mutex, limit, time } = self;
        let line = mutex.line()?;
        if limit == 0 {
            let rule = "the limit 0 of a shared ticket must be at least 1";
            return Err(Error::invalid_input("mutex", rule).at(line.path()));
        }
        let cohort: Arc<Cohort> = line.common((limit, time, mutex.markers()), || Cohort::new(limit, time));
        Ok(SharedMutex { line, cohort })
    }
}
