use super::shared_limit::Limit;
use super::{Semaphore, SharedLimit};
use docent_core::recipe::debug_handle;
use docent_core::{Client, Error};
use std::fmt;

/// Settings of a [`Semaphore`].
#[derive(Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct SemaphoreBuilder {
    client: Client,
    path: String,
    limit: Option<Limit>,
    checks: bool,
}

impl SemaphoreBuilder {
    pub(crate) fn new(client: &Client, path: &str) -> Self {
        Self { client: client.clone(), path: path.to_owned(), limit: None, checks: true }
    }

    /// Number of permits, a fixed limit. It is kept in the semaphore's node, in the format of kazoo's
    /// `Semaphore`, as long as anybody uses the semaphore, and compared with that of others.
    pub fn permits(mut self, permits: u32) -> Self {
        self.limit = Some(Limit::Fixed(permits));
        self
    }

    /// A limit that can be changed while the semaphore is in use, in place of a fixed one.
    pub fn limit(mut self, limit: &SharedLimit) -> Self {
        self.limit = Some(Limit::Shared(limit.clone()));
        self
    }

    /// Neither keeps the limit in the semaphore's node nor compares it with that of others, and does not look
    /// for contenders of other kinds at the path: then whoever has the higher limit lets more in, and a lock
    /// at the path lets somebody in beside the permits. For clients that may not read or write that node, and
    /// for a rolling change of a fixed limit. Default: all of that is done.
    pub fn without_checks(mut self) -> Self {
        self.checks = false;
        self
    }

    /// The semaphore.
    ///
    /// # Errors
    /// `InvalidInput` when the path breaks a rule, there is no permit, or neither permits nor a shared limit
    /// were given.
    pub fn build(self) -> Result<Semaphore, Error> {
        let invalid = |detail| Err(Error::invalid_input("semaphore", detail));
        match self.limit {
            None => invalid("permits, or a shared limit, must be given"),
            Some(Limit::Fixed(0)) => invalid("permits 0 must be at least 1"),
            Some(limit) => Semaphore::with(&self.client, &self.path, limit, self.checks),
        }
    }
}

impl fmt::Debug for SemaphoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_handle(f, "SemaphoreBuilder", &self.path, &self.client).finish_non_exhaustive()
    }
}
