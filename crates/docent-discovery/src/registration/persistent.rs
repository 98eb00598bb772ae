//! Instances that no session keeps: static and permanent ones.

use bytes::Bytes;
use docent_core::recipe::VersionedNode;
use docent_core::{Client, Error, ErrorKind};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A persistent node that holds an instance.
#[derive(Debug)]
pub(crate) struct Persistent {
    client: Client,
    path: String,
    wanted: Mutex<Wanted>,
    /// Error of the last attempt to write it, if that failed.
    failed: Mutex<Option<Error>>,
    /// Number of the content that was written last. Its lock makes writers come one after the other.
    written: tokio::sync::Mutex<u64>,
}

/// Content wanted of the node.
#[derive(Clone)]
struct Wanted {
    /// `None` when the node must go.
    data: Option<Bytes>,
    /// Number of this content: each change counts one up.
    number: u64,
}

// The announced data is not printed.
impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wanted").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Persistent {
    pub(super) fn new(client: &Client, path: String, data: Bytes) -> Self {
        let (wanted, written) =
            (Mutex::new(Wanted { data: Some(data), number: 1 }), tokio::sync::Mutex::default());
        Self { client: client.clone(), path, wanted, failed: Mutex::default(), written }
    }

    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn want(&self, data: Bytes) {
        self.wish(Some(data));
    }

    /// Stops writing the node from now on.
    pub(super) fn release(&self) {
        self.wish(None);
    }

    fn wish(&self, data: Option<Bytes>) {
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

    /// Writes the wanted content, unless that was done; the node is made anew if need be. Each step looks at
    /// the node first, so that lost replies do no harm. False when no node is wanted.
    pub(super) async fn write(&self) -> Result<bool, Error> {
        let mut written = self.written.lock().await;
        let Wanted { data: Some(data), number } = self.wanted().clone() else { return Ok(false) };
        if *written == number {
            return Ok(true);
        }
        let result = self.bring_about(&data).await;
        *self.failed() = result.as_ref().err().cloned();
        if result.is_ok() {
            *written = number;
        }
        result.map(|()| true)
    }

    async fn bring_about(&self, data: &Bytes) -> Result<(), Error> {
        let Self { client, path, .. } = self;
        let versioned = VersionedNode::new(client, path)?;
        loop {
            // Exact, because a write that is applied late could undo what somebody wrote since (decision 11).
            let written = match client.get(path).await {
                Ok(node) if node.stat.owner.is_some() => {
                    let detail = format!("{path:?} must not be the node of a dynamic instance, which it is");
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

    /// Deletes the node, unless it is wanted again or a dynamic instance's by now.
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

/// False when another look at the node shows what to do: somebody else was faster, or the outcome is unknown.
fn is_done(written: Result<bool, Error>) -> Result<bool, Error> {
    match written {
        Err(error) if error.kind() == ErrorKind::OutcomeUnknown => Ok(false),
        written => written,
    }
}
