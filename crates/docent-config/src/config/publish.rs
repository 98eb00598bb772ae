use super::Config;
use crate::history::{History, HistoryEntry, Listed, Obstacles, Plan};
use crate::rollout::Readers;
use crate::telemetry::publish_span;
use crate::{Origin, PublishError, Revision, Snapshot};
use bytes::Bytes;
use docent_core::recipe::{InOperation, VersionedNode, full_path};
use docent_core::{Client, Error, Node, Stat, planted};
use futures_util::future::{try_join, try_join3};
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
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
            // The server may lag behind the one that showed the value to the caller. The servers compare only
            // versions, and a re-created node may have the same version. Therefore the creating transaction
            // is compared as well (decision 9).
            let replace = config.replace(Replaces::Newest, |node| data_if_seen(node, seen, &data));
            let written = Box::pin(replace).await.in_operation("publish")?;
            Ok(published(value, written))
        }
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
            let read = |node: &Node| format.read_revision(Revision::from(&node.stat), &node.data);
            let present = node.map(read).transpose().map_err(PublishError::Unreadable)?;
            let Some(value) = change(present) else { return Ok(None) };
            let (data, value) = format.write(&value)?;
            last = Some(value);
            Ok(Some(data))
        };
        let written = self.replace(Replaces::Read, decide).await?;
        Ok(written.zip(last).map(|(revision, value)| Snapshot::new(value, revision, Origin::Server)))
    }

    /// Deletes the value, its history, and the reports of its readers ([`report_as`](Self::report_as)).
    /// Subscribers are notified and keep the last valid value. Returns false if there was no value.
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
            let lists =
                try_join3(versioned.read(), self.inner.history.list(&versioned), Readers::list(&versioned));
            let (node, listed, readers) = lists.await?;
            let Some(node) = node else { return Ok(false) };
            let with = |transaction| readers.remove_all(self.inner.history.remove_all(&listed, transaction));
            match versioned.delete(&node.stat, with).await {
                Ok(true) => return Ok(true),
                Err(error) if !readers.have_grown(&versioned, &error).await? => return Err(error.into()),
                _ => cas.lost().await?,
            }
        }
    }

    pub(super) async fn sync(&self) -> Result<(), Error> {
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

/// Last value that a `Config` published, with its history: the value that the next publish replaces, unless
/// another client writes.
#[derive(Default)]
pub(super) struct LastPublished(Mutex<Option<Published>>);

struct Published {
    revision: Revision,
    /// `None` for the first value of the node, which has no history.
    present: Option<Present>,
    /// Number of times the client had found the ensemble restored from an older snapshot.
    rollbacks: u64,
    /// True if this value replaced another value of this `Config`, so that no other client seems to write.
    is_alone: bool,
}

/// Value with its history, as a publish replaces it.
#[derive(Clone)]
pub(super) struct Present {
    pub(super) node: Option<Node>,
    /// `None` if no history is kept, or if it may not be listed.
    pub(super) listed: Option<Listed>,
    /// True for a value that was not read just now. If it is out of date, the servers refuse the write of its
    /// successor.
    pub(super) is_guess: bool,
}

impl Present {
    /// Reads the value and the history from a server, in parallel.
    pub(super) async fn read(versioned: &VersionedNode, history: &History) -> Result<Self, Error> {
        let (node, listed) = try_join(versioned.read(), history.list_kept(versioned)).await?;
        Ok(Self { node, listed, is_guess: false })
    }

    /// Returns the changes to the history when a value of `length` bytes replaces this one.
    pub(super) fn plan(&self, history: &History, length: usize, limit: usize, obstacles: &Obstacles) -> Plan {
        match (&self.node, &self.listed) {
            (Some(node), Some(listed)) => {
                let plan = history.plan(node, listed, length, limit, obstacles);
                if self.is_guess { plan.proving(listed) } else { plan }
            }
            _ => Plan::default(),
        }
    }

    /// Returns the stat that the node must have when it is replaced, or `None` if there must be no node.
    pub(super) fn seen(&self) -> Option<Stat> {
        let mut stat = self.node.as_ref()?.stat;
        if self.is_guess && planted!(GuessedVersionNotSent) {
            stat.version = -1;
        }
        Some(stat)
    }

    fn revision(&self) -> Option<Revision> {
        self.node.as_ref().map(|node| Revision::from(&node.stat))
    }
}

impl LastPublished {
    fn published(&self) -> MutexGuard<'_, Option<Published>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current value, assuming that no other client has written, so that it can be replaced
    /// without a read. Returns `None` if it must be read. `any` says that the next value does not depend on
    /// the current one.
    ///
    /// A node that was deleted and re-created may have the same version as the known one. An earlier value in
    /// its history distinguishes the two nodes: its name contains the transactions that wrote it and that
    /// created the node.
    pub(super) fn guess(&self, client: &Client, history: &History, any: bool) -> Option<Present> {
        let published = self.published();
        let Published { present, rollbacks, is_alone, .. } = published.as_ref()?;
        let present = present.as_ref()?;
        let is_proven = match &present.listed {
            Some(listed) => listed.newest().is_some(),
            None => any && !history.is_kept(),
        };
        let is_same = *rollbacks == client.state().current().rollbacks;
        (*is_alone && is_same && is_proven).then(|| present.clone())
    }

    /// Discards the known value: another client has written, or this cannot be ruled out.
    pub(super) fn forget(&self) {
        *self.published() = None;
    }

    /// Records that `data` was published in place of `replaced`, with the planned changes to the history.
    pub(super) fn note(&self, client: &Client, replaced: &Present, plan: Plan, data: Bytes, stat: Stat) {
        let rollbacks = client.state().current().rollbacks;
        let listed = replaced.listed.as_ref().map(|listed| listed.after(plan));
        let node = replaced.node.clone().map(|mut node| {
            (node.data, node.stat) = (data, stat);
            node
        });
        let present = node.map(|node| Present { node: Some(node), listed, is_guess: true });
        let mut published = self.published();
        let last = published.as_ref().map(|last| last.revision);
        let is_alone = replaced.is_guess || (last.is_some() && last == replaced.revision());
        *published = Some(Published { revision: Revision::from(&stat), present, rollbacks, is_alone });
    }
}

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
        let format = &self.inner.format;
        let read = |(revision, data)| {
            let value = format.read_revision(revision, &data);
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
        let value = self.inner.format.read_revision(revision, &data).map_err(PublishError::Refused)?;
        let decide = |node: Option<&Node>| match seen {
            Some(_) => data_if_seen(node, seen, &data),
            None => Ok(Some(data.clone())),
        };
        let replaces = if seen.is_some() { Replaces::Read } else { Replaces::Any };
        let written = self.replace(replaces, decide).await?;
        Ok(published(value, written))
    }
}
