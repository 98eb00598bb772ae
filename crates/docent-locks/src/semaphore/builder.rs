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

    /// Sets a fixed number of permits. The limit is stored in the semaphore's node, in the format of kazoo's
    /// `Semaphore`, as long as any client uses the semaphore. Clients with another limit are refused.
    pub fn permits(mut self, permits: u32) -> Self {
        self.limit = Some(Limit::Fixed(permits));
        self
    }

    /// Sets a limit that can be changed while the semaphore is in use, instead of a fixed one.
    pub fn limit(mut self, limit: &SharedLimit) -> Self {
        self.limit = Some(Limit::Shared(limit.clone()));
        self
    }

    /// Disables two checks: the comparison of the limit with the limit in the semaphore's node, and the
    /// search for contenders of other kinds at the path. Without the checks, the client with the highest
    /// limit may exceed the others' limits, and a lock at the same path may be held beside the permits. Use
    /// this for clients that may not read or write the semaphore's node, and to change a fixed limit by a
    /// rolling update. By default both checks are made.
    pub fn without_checks(mut self) -> Self {
        self.checks = false;
        self
    }

    /// Builds the semaphore.
    ///
    /// # Errors
    /// `InvalidInput` if the path breaks a rule, if the number of permits is 0, or if neither permits nor a
    /// shared limit were given.
    pub fn build(self) -> Result<Semaphore, Error> {
        let invalid = |detail| Err(Error::invalid_input("semaphore", detail));
        match self.limit {
            None => invalid("a number of permits or a shared limit must be given"),
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
