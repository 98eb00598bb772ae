use super::Config;
use super::publish::{Replaces, over, published};
use crate::history::HistoryEntry;
use crate::{PublishError, Revision, Snapshot};
use docent_core::{Error, Node};
use std::future::Future;

impl<T: Send + Sync + 'static> Config<T> {
    /// The values that were replaced, the latest first, without the present one.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn history(&self) -> impl Future<Output = Result<Vec<HistoryEntry<T>>, Error>> + Send + use<T> {
        let config = self.clone();
        async move { config.past().await }
    }

    async fn past(&self) -> Result<Vec<HistoryEntry<T>>, Error> {
        self.sync().await?;
        let past = self.inner.history.read(&self.inner.versioned).await?;
        let read = |(revision, data)| {
            let value = self.inner.format.read(&data).map_err(|refusal| refusal.of(revision));
            HistoryEntry { revision, value }
        };
        Ok(past.into_iter().map(read).collect())
    }

    /// Publishes an earlier value again, byte for byte, whatever is there. It is a new value with a
    /// revision of its own: readers see nothing go back. Of the history only that value is read.
    ///
    /// # Errors
    /// [`PublishError::NoSuchRevision`] when the history does not hold it; [`PublishError::Refused`] when it
    /// would be refused by now; else as [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn rollback(
        &self,
        to: &Revision,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        let (config, to) = (self.clone(), *to);
        async move { Box::pin(config.roll_back(&to, None)).await }
    }

    /// As [`rollback`](Self::rollback), if the present value is still the one that the caller saw, such as
    /// the bad one: a value that somebody published since, perhaps the mended one, is not overwritten. The
    /// caller has `seen` from [`Snapshot::revision`], or from
    /// [`Rejection::revision`](crate::Rejection::revision) where the value was refused.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] when it is not, or was deleted; else as [`rollback`](Self::rollback).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn rollback_if(
        &self,
        to: &Revision,
        seen: &Revision,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        let (config, to, seen) = (self.clone(), *to, *seen);
        async move { Box::pin(config.roll_back(&to, Some(seen))).await }
    }

    async fn roll_back(&self, to: &Revision, seen: Option<Revision>) -> Result<Snapshot<T>, PublishError> {
        // The server may lag behind another that showed the revisions to the caller.
        self.sync().await?;
        let found = self.inner.history.find(&self.inner.versioned, to.mzxid).await?;
        let (revision, data) = found.ok_or(PublishError::NoSuchRevision)?;
        let value =
            self.inner.format.read(&data).map_err(|refusal| PublishError::Refused(refusal.of(revision)))?;
        let decide = |node: Option<&Node>| match seen {
            Some(_) => over(node, seen, &data),
            None => Ok(Some(data.clone())),
        };
        let replaces = if seen.is_some() { Replaces::Read } else { Replaces::Any };
        let written = self.replace(replaces, decide).await?;
        Ok(published(value, written))
    }
}
