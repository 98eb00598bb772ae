use super::SimpleQueue;
use super::known::Listing;
use bytes::Bytes;
use docent_core::{Error, ErrorKind};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use tokio::time::Instant;

/// Attempts in vain after which it is found out how many items of a long queue are gone.
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

    /// Only the waiting is under the deadline: an item that is being deleted is returned.
    pub(super) async fn take_by(&self, deadline: Option<Instant>) -> Result<Option<Bytes>, Error> {
        if let Some(item) = self.take_known_unless_due().await? {
            return Ok(Some(item));
        }
        // What the stream reads was asked for after what it emitted before.
        let mut asked = self.known.taken();
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
                    self.known.fill(Listing::new(listed?, asked));
                    asked = self.known.taken();
                }
                // The stream ends with the client: this says so.
                Some(None) => self.known.fill(self.list().await?),
                None => {}
            }
            if let Some(item) = self.take_known(true).await? {
                return Ok(Some(item));
            }
        }
    }

    /// Takes the first of the known items that is there, without a listing.
    async fn take_known_unless_due(&self) -> Result<Option<Bytes>, Error> {
        if self.known.is_due() {
            return Ok(None);
        }
        if self.known.is_contended() {
            self.skip_taken().await?;
        }
        self.take_known(false).await
    }

    /// Takes the first of the known items that is there; of those that are `listed` just now, all are tried.
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

    /// Takes an item; `None` when it is gone.
    async fn take_one(&self, name: &str) -> Result<Option<Bytes>, Error> {
        while let Some(node) = self.read(name).await? {
            let delete = self.client.transaction().delete(&self.item(name), node.stat.version);
            // Exact: after a lost reply it must be certain whether this consumer took the item (decision 11).
            match delete.commit_exactly().await {
                Ok(_) => return Ok(Some(node.data)),
                Err(error) if error.kind() == ErrorKind::NoNode => break,
                // Somebody wrote to the item: it is read again, because the deleted data must be the returned
                // data.
                Err(error) if error.kind() == ErrorKind::BadVersion => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Finds out how many of the first items of a long queue others have taken.
    async fn skip_taken(&self) -> Result<(), Error> {
        let marks = self.known.marks();
        let looks = marks.iter().map(|name| async { self.client.exists(&self.item(name)).await });
        let found = try_join_all(looks).await?;
        let gone: Vec<_> = found.into_iter().map(|item| item.is_none()).collect();
        self.known.forget_gone(&marks, &gone);
        Ok(())
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
