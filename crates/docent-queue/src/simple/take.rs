use super::SimpleQueue;
use super::known::Listing;
use bytes::Bytes;
use docent_core::{Error, ErrorKind};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use tokio::time::Instant;

/// Number of failed attempts after which the process checks how many items of a long queue are deleted.
const SKIP_AFTER: usize = 3;

impl SimpleQueue {
    /// Takes the first item if there is one.
    pub(super) async fn take_now(&self) -> Result<Option<Bytes>, Error> {
        if let Some(item) = self.take_known_unless_due().await? {
            return Ok(Some(item));
        }
        self.known.fill(self.list().await?);
        self.take_known(true).await
    }

    /// Only the wait is bounded by the deadline: an item that is being deleted is still returned.
    pub(super) async fn take_until(&self, deadline: Option<Instant>) -> Result<Option<Bytes>, Error> {
        if let Some(item) = self.take_known_unless_due().await? {
            return Ok(Some(item));
        }
        // Each listing of the stream was requested after the previous one was yielded.
        let mut requested_after = self.known.taken();
        let mut folder = self.client.watch_children(&self.path)?;
        loop {
            let listed = tokio::select! {
                biased;
                listed = folder.next() => Some(listed),
                () = self.known.returned() => None,
                () = sleep_until(deadline) => return Ok(None),
            };
            match listed {
                Some(Some(listed)) => {
                    self.known.fill(Listing::new(listed?, requested_after));
                    requested_after = self.known.taken();
                }
                // The stream ends when the client is closed; this request returns the matching error.
                Some(None) => self.known.fill(self.list().await?),
                None => {}
            }
            if let Some(item) = self.take_known(true).await? {
                return Ok(Some(item));
            }
        }
    }

    /// Takes the first known item that still exists, without a listing.
    async fn take_known_unless_due(&self) -> Result<Option<Bytes>, Error> {
        if self.known.is_due() {
            return Ok(None);
        }
        if self.known.is_contended() {
            self.skip_taken().await?;
        }
        self.take_known(false).await
    }

    /// Takes the first known item that still exists. If the items were just `listed`, tries all of them.
    async fn take_known(&self, listed: bool) -> Result<Option<Bytes>, Error> {
        let mut in_vain = 0;
        while let Some(candidate) = self.known.first() {
            if let Some(item) = self.take_one(candidate.name()).await? {
                candidate.taken();
                return Ok(Some(item));
            }
            if candidate.missed() && !listed {
                break;
            }
            in_vain += 1;
            if in_vain % SKIP_AFTER == 0 {
                self.skip_taken().await?;
            }
        }
        Ok(None)
    }

    /// Takes an item. Returns `None` if it was deleted.
    async fn take_one(&self, name: &str) -> Result<Option<Bytes>, Error> {
        while let Some(node) = self.read(name).await? {
            let delete = self.client.transaction().delete(&self.item(name), node.stat.version);
            // An exact write: after a lost reply it must be certain whether this consumer took the item
            // (decision 11).
            match delete.commit_exactly().await {
                Ok(_) => return Ok(Some(node.data)),
                Err(error) if error.kind() == ErrorKind::NoNode => break,
                // The item's data was changed meanwhile. It is read again, because the returned data must be
                // the deleted data.
                Err(error) if error.kind() == ErrorKind::BadVersion => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Finds out how many of the first items of a long queue other consumers have taken.
    async fn skip_taken(&self) -> Result<(), Error> {
        let marks = self.known.marks();
        let checks = marks.iter().map(|name| async { self.client.exists(&self.item(name)).await });
        let stats = try_join_all(checks).await?;
        let deleted: Vec<_> = stats.into_iter().map(|item| item.is_none()).collect();
        self.known.forget_deleted(&marks, &deleted);
        Ok(())
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
