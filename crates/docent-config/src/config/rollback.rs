use super::Config;
use super::publish::{Replaces, data_if_seen, published};
use crate::history::HistoryEntry;
use crate::{PublishError, Revision, Snapshot};
use docent_core::recipe::InOperation;
use docent_core::{Error, Node};
use std::future::Future;

impl<T: Send + Sync + 'static> Config<T> {
    /// Returns the replaced values, the latest first, without the current one.
    ///
    /// # Errors
    /// `NoAuth`, `Timeout`, `Closed`.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub fn history(&self) -> impl Future<Output = Result<Vec<HistoryEntry<T>>, Error>> + Send + use<T> {
        let config = self.clone();
        async move { config.list_history().await.in_operation("history") }
    }

    async fn list_history(&self) -> Result<Vec<HistoryEntry<T>>, Error> {
        self.sync().await?;
        let listed = self.inner.history.read(&self.inner.versioned).await?;
        let read = |(revision, data)| {
            let value = self.inner.format.read(&data).map_err(|refusal| refusal.of(revision));
            HistoryEntry { revision, value }
        };
        Ok(listed.into_iter().map(read).collect())
    }

    /// Publishes an earlier value again, byte for byte, unconditionally. The result is a new value with its
    /// own revision, so readers never see revisions go back. Only that value of the history is read.
    ///
    /// # Errors
    /// [`PublishError::NoSuchRevision`] if the history does not contain the revision;
    /// [`PublishError::Refused`] if readers would now reject the value; otherwise the same as
    /// [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn rollback(
        &self,
        to: &Revision,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        let (config, to) = (self.clone(), *to);
        async move { Box::pin(config.roll_back(&to, None)).await.in_operation("rollback") }
    }

    /// Like [`rollback`](Self::rollback), but only if the current value is still the one that the caller saw,
    /// such as the bad one. A value that was published since then, perhaps the corrected one, is not
    /// overwritten. Take `seen` from [`Snapshot::revision`], or from
    /// [`Rejection::revision`](crate::Rejection::revision) if the value was rejected.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] if the current value is another one or was deleted; otherwise the same as
    /// [`rollback`](Self::rollback).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn rollback_if(
        &self,
        to: &Revision,
        seen: &Revision,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        let (config, to, seen) = (self.clone(), *to, *seen);
        async move { Box::pin(config.roll_back(&to, Some(seen))).await.in_operation("rollback") }
    }

    async fn roll_back(&self, to: &Revision, seen: Option<Revision>) -> Result<Snapshot<T>, PublishError> {
        // The server may lag behind the one that showed the revisions to the caller.
        self.sync().await?;
        let found = self.inner.history.find(&self.inner.versioned, to.mzxid).await?;
        let (revision, data) = found.ok_or(PublishError::NoSuchRevision)?;
        let value =
            self.inner.format.read(&data).map_err(|refusal| PublishError::Refused(refusal.of(revision)))?;
        let decide = |node: Option<&Node>| match seen {
            Some(_) => data_if_seen(node, seen, &data),
            None => Ok(Some(data.clone())),
        };
        let replaces = if seen.is_some() { Replaces::Read } else { Replaces::Any };
        let written = self.replace(replaces, decide).await?;
        Ok(published(value, written))
    }
}
