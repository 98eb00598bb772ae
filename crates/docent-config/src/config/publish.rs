use super::Config;
use super::last_published::Present;
use crate::history::Obstacles;
use crate::telemetry::publish_span;
use crate::{Origin, PublishError, Revision, Snapshot};
use bytes::Bytes;
use docent_core::{Node, Stat};
use futures_util::future::try_join;
use std::future::Future;
use tracing::{Instrument, Span};

impl<T: Send + Sync + 'static> Config<T> {
    /// Publishes a value, whatever is there; the value it replaces goes into the history. Returns the
    /// published value, as others read it.
    ///
    /// # Errors
    /// [`PublishError::Refused`] when others would refuse it; [`PublishError::Core`] with `NoAuth`,
    /// `TooLarge`, `Timeout`, `Closed`, and with `OutcomeUnknown` only when the session ended before it could
    /// be found out what became of it.
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
            let written = Box::pin(config.replace(Replaces::Any, |_| Ok(Some(data.clone())))).await?;
            Ok(published(value, written))
        }
    }

    /// Publishes a value if the present one is still the one that the caller saw: the same value of the same
    /// node. With a [default](crate::Origin::Default), if there is none.
    ///
    /// # Caveats
    /// Of a node that is deleted and created anew in the very moment of the write the servers compare only
    /// the version.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] when it is not; else as [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn publish_if(
        &self,
        value: &T,
        seen: &Snapshot<T>,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        self.publish_over(value, seen.revision())
    }

    /// Publishes a value if there is none.
    ///
    /// # Errors
    /// [`PublishError::Conflict`] when there is one; else as [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: the value may have been published.
    pub fn publish_new(
        &self,
        value: &T,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        self.publish_over(value, None)
    }

    fn publish_over(
        &self,
        value: &T,
        seen: Option<Revision>,
    ) -> impl Future<Output = Result<Snapshot<T>, PublishError>> + Send + use<T> {
        let (config, written) = (self.clone(), self.inner.format.write(value));
        async move {
            let (data, value) = written?;
            let written = Box::pin(config.replace_seen(&data, seen)).await?;
            Ok(published(value, written))
        }
    }

    async fn replace_seen(
        &self,
        data: &Bytes,
        seen: Option<Revision>,
    ) -> Result<Option<Revision>, PublishError> {
        // The server may lag behind another that showed the value to the caller. The servers compare versions
        // only, and a node that was made anew may have the same: so the creating transaction is compared, too
        // (decision 9).
        self.replace(Replaces::Newest, |node| over(node, seen, data)).await
    }

    /// Makes a new value from the present one, `None` when there is none, and publishes it if nobody else was
    /// faster; else does it again with the value that is there then. Where `change` returns `None` nothing is
    /// published, and this returns `None`; before that it is asked once more, with the newest value of the
    /// servers, as the one that this client talks to may lag behind.
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
    /// [`PublishError::Unreadable`] when the present value is no good one; else as
    /// [`publish`](Self::publish). `Timeout`, too, when others were faster all the time.
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
        async move { Box::pin(config.change(change)).await }
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

    /// Deletes the value and its history. Subscribers keep the last good value, and are told. False when
    /// there was none.
    ///
    /// # Errors
    /// [`PublishError::Core`] with `NotEmpty` when somebody put something else below it; else as
    /// [`publish`](Self::publish).
    ///
    /// # Cancel safety
    /// This method is *not* cancel safe: it may have been deleted.
    pub fn delete(&self) -> impl Future<Output = Result<bool, PublishError>> + Send + use<T> {
        let config = self.clone();
        async move { Box::pin(config.remove()).await }
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

    /// Replaces the present value by the one that `decide` makes of it, unless that is none.
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
                // Nothing is refused, and no decision not to write made, by what is not known for certain.
                _ if present.is_guess => continue,
                // No server compares versions where nothing is written: a decision not to write must not come
                // of an old value.
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
                    self.tell_published(&stat);
                    match obstacles.is_none() {
                        true => last.note(self.client(), &present, plan, data, stat),
                        false => last.forget(),
                    }
                    return Ok(Some(Revision::from(&stat)));
                }
                // The refusal came after all that it was refused for: this server shows that by now.
                Ok(None) if present.is_guess => last.forget(),
                Ok(None) => cas.lost().await?,
                Err(error) => {
                    last.forget();
                    if !(present.is_guess && history.is_about(&error)) {
                        history.give_way(&versioned, &plan, error, &mut obstacles).await?;
                    }
                }
            }
        }
    }

    fn tell_published(&self, stat: &Stat) {
        tracing::debug!(path = self.path(), version = stat.version, mzxid = stat.mzxid, "published");
        Span::current().record("docent.version", stat.version);
    }
}

/// Value that a publish replaces.
#[derive(Debug, Clone, Copy)]
pub(super) enum Replaces {
    /// The one that is there, whatever that is.
    Any,
    /// One from which the next is made, or that must be a certain one.
    Read,
    /// As `Read`, and no other server may have shown a newer one to the caller.
    Newest,
}

/// Decides for `data` if `node` has the value that was `seen`.
pub(super) fn over(
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
    let revision = written.expect("a value that is always decided for is written");
    Snapshot::new(value, revision, Origin::Server)
}
