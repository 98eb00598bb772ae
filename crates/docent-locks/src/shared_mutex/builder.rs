use super::{Cohort, SharedMutex};
use crate::MutexBuilder;
use docent_core::{Client, Error};
use std::sync::Arc;
use std::time::Duration;

/// Times that a ticket is passed on by default.
const LIMIT: u32 = 100;

/// Time for which a ticket is passed on by default.
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

    /// The maximum number of times that a ticket is passed on to another task; at least 1. Default 100.
    ///
    /// For each shared ticket ahead of it, a contender in another process waits for at most this many more
    /// turns than for a plain ticket. A high limit favours the tasks of this process, a low limit the other
    /// processes.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// No turn begins later than this after the first turn with the same ticket. Default 1 s. A turn that has
    /// begun is not cut short.
    pub fn share_for(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// As [`MutexBuilder::neighbours`].
    pub fn neighbours(mut self, marker: impl Into<String>) -> Self {
        self.mutex = self.mutex.neighbours(marker);
        self
    }

    /// Builds the mutex.
    ///
    /// # Errors
    /// `InvalidInput` if the limit is 0; else as [`MutexBuilder::build`].
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
