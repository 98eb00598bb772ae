//! Instances that do not depend on a session: static and permanent ones.

use super::Announcer;
use bytes::Bytes;
use docent_core::recipe::{Preparation, VersionedNode};
use docent_core::{Client, Error, ErrorKind};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A persistent node that holds an instance.
pub(crate) struct Persistent {
    client: Client,
    path: String,
    /// Work that precedes each write of new data.
    preparation: Option<Arc<Preparation>>,
    wanted: Mutex<Wanted>,
    /// Error of the last write, if it failed.
    failed: Mutex<Option<Error>>,
    /// Number of the content that was written last. Its lock serializes writers.
    written: tokio::sync::Mutex<u64>,
}

/// Wanted content of the node.
#[derive(Clone)]
struct Wanted {
    /// `None` if the node must be deleted.
    data: Option<Bytes>,
    /// Number of this content, incremented by each change.
    number: u64,
}

// `Debug` does not print the announced data.
impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted").field("number", &self.number).finish_non_exhaustive()
    }
}

impl fmt::Debug for Persistent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Persistent")
            .field("path", &self.path)
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

impl Persistent {
    pub(super) fn new(announcer: &Announcer, path: String, data: Bytes) -> Self {
        Self {
            client: announcer.client.clone(),
            path,
            preparation: announcer.preparation.clone(),
            wanted: Mutex::new(Wanted { data: Some(data), number: 1 }),
            failed: Mutex::default(),
            written: tokio::sync::Mutex::default(),
        }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the content that the node must have from now on. With `None`, the node is not written any more.
    pub(super) fn set_wanted(&self, data: Option<Bytes>) {
        let mut wanted = self.wanted();
        *wanted = Wanted { data, number: wanted.number + 1 };
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn failed(&self) -> MutexGuard<'_, Option<Error>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn last_error(&self) -> Option<Error> {
        self.failed().clone()
    }

    /// Writes the wanted content, unless this was done. Re-creates the node if necessary. Each step reads the
    /// node first, so that lost replies do no harm. Returns false if no node is wanted.
    pub(super) async fn write(&self) -> Result<bool, Error> {
        let mut written = self.written.lock().await;
        let Wanted { data: Some(data), number } = self.wanted().clone() else { return Ok(false) };
        if *written == number {
            return Ok(true);
        }
        let result = self.apply(&data).await;
        *self.failed() = result.as_ref().err().cloned();
        if result.is_ok() {
            *written = number;
        }
        result.map(|()| true)
    }

    async fn apply(&self, data: &Bytes) -> Result<(), Error> {
        let Self { client, path, .. } = self;
        if let Some(prepare) = &self.preparation {
            prepare(data.clone()).await?;
        }
        let versioned = VersionedNode::new(client, path)?;
        loop {
            // Exact writes, because a late write could undo a write of another client (decision 11).
            let written = match client.get(path).await {
                Ok(node) if node.stat.owner.is_some() => {
                    let detail = format!("{path:?} must not be the node of a dynamic instance");
                    return Err(Error::invalid_input("register", detail));
                }
                Ok(node) if node.data == *data => return Ok(()),
                Ok(node) => versioned.write(Some(&node.stat), data, |transaction| transaction).await,
                Err(error) if error.kind() == ErrorKind::NoNode => {
                    versioned.write(None, data, |transaction| transaction).await
                }
                Err(error) => return Err(error),
            };
            if is_done(written.map(|stat| stat.is_some()))? {
                return Ok(());
            }
            client.sync(path).await?;
        }
    }

    /// Deletes the node, unless it is wanted again or now belongs to a dynamic instance.
    pub(super) async fn remove(&self) -> Result<(), Error> {
        let Self { client, path, .. } = self;
        let _one_at_a_time = self.written.lock().await;
        if self.wanted().data.is_some() {
            return Ok(());
        }
        let versioned = VersionedNode::new(client, path)?;
        loop {
            let Some(stat) = client.exists(path).await?.filter(|stat| stat.owner.is_none()) else {
                return Ok(());
            };
            if is_done(versioned.delete(&stat, |transaction| transaction).await)? {
                return Ok(());
            }
            client.sync(path).await?;
        }
    }
}

/// Returns false if the node must be read again: another client wrote first, or the outcome is unknown.
fn is_done(written: Result<bool, Error>) -> Result<bool, Error> {
    match written {
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Ok(false),
        written => written,
    }
}
