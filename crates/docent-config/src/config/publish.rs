use super::Config;
use super::last_published::Present;
use crate::history::Obstacles;
use crate::telemetry::publish_span;
use crate::{Origin, PublishError, Revision, Snapshot};
use bytes::Bytes;
use docent_core::recipe::{InOperation, full_path};
use docent_core::{Node, Stat};
use futures_util::future::try_join;
use std::future::Future;
use tracing::{Instrument, Span};

impl<T: Send + Sync + 'static> Config<T> {
    /// Publishes a value unconditionally, and adds the value it replaces to the history. Returns the
    /// published value as readers see it.
    ///
    /// # Errors
    /// [`PublishError::Refused`] if readers would reject the value; [`PublishError::Core`] with `NoAuth`,
    /// `TooLarge`, `Timeout`, `Closed`, and with `OutcomeUnknown` only if the session ended before the
    /// outcome could be determined.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn publish(
        &self,
        value: &T,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        let (config, written) = (self.clone(), self.inner.format.write(value));
        async move {
            let (data, value) = written?;
            let written = Box::pin(config.replace(Replaces::Any, |_| Ok(Some(data.clone())))).await;
            let written = written.in_operation("publish")?;
            Ok(published(value, written))
        }
    }

    /// Publishes a value if the node still has the value of `seen`. A re-created node counts as changed, even
    /// if its data is the same. If `seen` is the [default](crate::Origin::Default), publishes only if the
    /// node does not exist.
    ///
    /// # Caveats
    /// If the node is deleted and re-created between the last read and the write, the servers compare only
    /// its version: a new value with the same version is then overwritten.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] if the current value is another one; otherwise the same as
    /// [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn publish_if(
        &self,
        value: &T,
        seen: &Snapshot<T>,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        self.publish_replacing(value, seen.revision())
    }

    /// Publishes a value if there is none.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] if there is one; otherwise the same as [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn publish_new(
        &self,
        value: &T,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        self.publish_replacing(value, None)
    }

    fn publish_replacing(
        &self,
        value: &T,
        seen: Option<Revision>,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        let (config, written) = (self.clone(), self.inner.format.write(value));
        async move {
            let (data, value) = written?;
            let written = Box::pin(config.replace_seen(&data, seen)).await.in_operation("publish")?;
            Ok(published(value, written))
        }
    }

    async fn replace_seen(
        &self,
        data: &Bytes,
        seen: Option<Revision>,
    ) -> Result<Option<Revision>, PublishError> {
        // The server may lag behind the one that showed the value to the caller. The servers compare only
        // versions, and a re-created node may have the same version. Therefore the creating transaction is
        // compared as well (decision 9).
        self.replace(Replaces::Newest, |node| data_if_seen(node, seen, data)).await
    }

    /// Computes a new value from the current one (`None` if there is none) and publishes it. If another
    /// client publishes first, this is repeated with the newer value. If `change` returns `None`, it is
    /// called once more with the latest value, because the server of this client may lag behind. If it
    /// returns `None` again, nothing is published and this method returns `None`.
    ///
    /// ```no_run
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Limits { per_second: u32 }
    /// # async fn example(limits: docent_config::Config<Limits>) -> Result<(), docent_config::PublishError> {
    /// limits.update(|now| Some(Limits { per_second: now?.per_second * 2 })).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`PublishError::Unreadable`] if the current value is invalid; otherwise the same as
    /// [`publish`](Self::publish). Also `Timeout` if other clients published first on every attempt.
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn update<F>(
        &self,
        change: F,
    ) -> impl Future<Output = Result<Option<Snapshot<T>>, PublishError>> + Send + use<T, F>
    where
        F: FnMut(Option<T>) -> Option<T> + Send,
    {
        let config = self.clone();
        async move { Box::pin(config.change(change)).await.in_operation("update") }
    }

    async fn change(
        &self,
        mut change: impl FnMut(Option<T>) -> Option<T> + Send,
    ) -> Result<Option<Snapshot<T>>, PublishError> {
        let format = &self.inner.format;
        let mut last = None;
        let decide = |node: Option<&Node>| {
            let read = |node: &Node| {
                format.read(&node.data).map_err(|refusal| refusal.of(Revision::from(&node.stat)))
            };
            let present = node.map(read).transpose().map_err(PublishError::Unreadable)?;
            let Some(value) = change(present) else { return Ok(None) };
            let (data, value) = format.write(&value)?;
            last = Some(value);
            Ok(Some(data))
        };
        let written = self.replace(Replaces::Read, decide).await?;
        Ok(written.zip(last).map(|(revision, value)| Snapshot::new(value, revision, Origin::Server)))
    }

    /// Deletes the value and its history. Subscribers are notified and keep the last valid value. Returns
    /// false if there was no value.
    ///
    /// # Errors
    /// [`PublishError::Core`] with `NotEmpty` if there are other nodes below the value; otherwise the same as
    /// [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been deleted.
    pub fn delete(&self) -> impl Future<Output = Result<bool, PublishError>> + Send + use<T> {
        let config = self.clone();
        async move { Box::pin(config.remove()).await.in_operation("delete") }
    }

    async fn remove(&self) -> Result<bool, PublishError> {
        self.inner.last_published.forget();
        self.sync().await?;
        let mut cas = self.inner.versioned.cas_loop();
        loop {
            let versioned = cas.versioned();
            let (node, listed) = try_join(versioned.read(), self.inner.history.list(&versioned)).await?;
            let Some(node) = node else { return Ok(false) };
            let with = |transaction| self.inner.history.remove_all(&listed, transaction);
            if versioned.delete(&node.stat, with).await? {
                return Ok(true);
            }
            cas.lost().await?;
        }
    }

    pub(super) async fn sync(&self) -> Result<(), docent_core::Error> {
        self.inner.versioned.client().sync(self.path()).await
    }

    /// Replaces the current value by the value that `decide` returns, unless it returns `None`.
    pub(super) fn replace(
        &self,
        replaces: Replaces,
        decide: impl FnMut(Option<&Node>) -> Result<Option<Bytes>, PublishError> + Send,
    ) -> impl Future<Output = Result<Option<Revision>, PublishError>> + Send {
        let span = publish_span(self.inner.versioned.client().label(), self.path());
        self.replace_once_decided(replaces, decide).instrument(span)
    }

    async fn replace_once_decided(
        &self,
        replaces: Replaces,
        mut decide: impl FnMut(Option<&Node>) -> Result<Option<Bytes>, PublishError> + Send,
    ) -> Result<Option<Revision>, PublishError> {
        let (history, last) = (&self.inner.history, &self.inner.last_published);
        let mut cas = self.inner.versioned.cas_loop();
        let (mut caught_up, mut obstacles) = (false, Obstacles::default());
        let mut guess = last.guess(self.client(), history, matches!(replaces, Replaces::Any));
        loop {
            let versioned = cas.versioned();
            let present = match guess.take() {
                Some(present) => present,
                None => {
                    if matches!(replaces, Replaces::Newest) && !std::mem::replace(&mut caught_up, true) {
                        versioned.client().sync(self.path()).await?;
                    }
                    Present::read(&versioned, history).await?
                }
            };
            let data = match decide(present.node.as_ref()) {
                Ok(Some(data)) => data,
                // An assumed value is not certain enough to reject anything, or to decide not to write.
                _ if present.is_guess => continue,
                // If nothing is written, no server compares versions. A decision not to write must therefore
                // not be based on an old value.
                Ok(None) | Err(PublishError::Unreadable(_)) if !caught_up => {
                    versioned.client().sync(self.path()).await?;
                    caught_up = true;
                    continue;
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(error),
            };
            let limit = versioned.client().max_request();
            let plan = present.plan(history, data.len(), limit, &obstacles);
            let with = |transaction| history.carry_out(&plan, transaction);
            match versioned.write(present.seen().as_ref(), &data, with).await {
                Ok(Some(stat)) => {
                    self.log_published(&stat);
                    match obstacles.is_none() {
                        true => last.note(self.client(), &present, plan, data, stat),
                        false => last.forget(),
                    }
                    return Ok(Some(Revision::from(&stat)));
                }
                // The refusal was ordered after the writes that caused it, so this server already shows them.
                Ok(None) if present.is_guess => last.forget(),
                Ok(None) => cas.lost().await?,
                Err(error) => {
                    last.forget();
                    if !(present.is_guess && history.is_about(&error)) {
                        history.skip_refused(&versioned, &plan, error, &mut obstacles).await?;
                    }
                }
            }
        }
    }

    fn log_published(&self, stat: &Stat) {
        // Event: This client published a configuration value.
        tracing::debug!(target: "docent::config", client = %self.client().label(), path = %full_path(self.client(), self.path()), version = stat.version, mzxid = stat.mzxid, "published");
        Span::current().record("docent.version", stat.version);
    }
}

/// Value that a publish replaces.
#[derive(Debug, Clone, Copy)]
pub(super) enum Replaces {
    /// The current value, whatever it is.
    Any,
    /// A value from which the next one is computed, or that must be a certain one.
    Read,
    /// Like `Read`, and no other server may have shown the caller a newer value.
    Newest,
}

/// Returns `data` if `node` has the value that was `seen`.
pub(super) fn data_if_seen(
    node: Option<&Node>,
    seen: Option<Revision>,
    data: &Bytes,
) -> Result<Option<Bytes>, PublishError> {
    let is_seen = match (node, seen) {
        (Some(node), Some(seen)) => seen.is(&node.stat),
        (None, None) => true,
        _ => false,
    };
    is_seen.then(|| Some(data.clone())).ok_or(PublishError::Conflict)
}

pub(super) fn published<T>(value: T, written: Option<Revision>) -> Snapshot<T> {
    let revision = written.expect("the value was written, because every decision was to write it");
    Snapshot::new(value, revision, Origin::Server)
}
