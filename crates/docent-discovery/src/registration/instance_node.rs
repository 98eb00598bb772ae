use super::RegistrationStatus;
use super::persistent::Persistent;
use crate::{instance, kept};
use bytes::Bytes;
use docent_core::recipe::{KeptNode, KeptNodeBuilder, Preparation, Shown};
use docent_core::{Client, Error, ErrorKind, Released};
use std::sync::Arc;
use std::time::Duration;

/// Node that announces an instance.
#[derive(Debug)]
pub(crate) enum InstanceNode {
    Kept(KeptNode),
    Persistent(Persistent),
}

impl InstanceNode {
    /// Starts announcing, without waiting. `first` is the work that precedes each write of new data.
    fn keep(
        client: &Client,
        path: &str,
        data: Bytes,
        first: Option<&Arc<Preparation>>,
    ) -> Result<Self, Error> {
        Self::builder(client, path, data, first).start().map(Self::Kept)
    }

    fn builder(
        client: &Client,
        path: &str,
        data: Bytes,
        first: Option<&Arc<Preparation>>,
    ) -> KeptNodeBuilder {
        let node = KeptNode::builder(client, path).data(data).label("registration");
        node.preparation(first).let_others_choose(instance::read_choice)
    }

    /// Returns true while another client wants the instance disabled.
    pub(crate) fn is_disabled_by_others(&self) -> bool {
        matches!(self, Self::Kept(node) if node.shown() == Shown::FinalData)
    }

    /// Sets the data that a kept node gets before the client's shutdown removes it, or while another client
    /// wants the instance disabled.
    pub(crate) fn set_final_data(&self, final_data: Option<(Bytes, Duration)>) {
        if let Self::Kept(node) = self {
            node.set_final_data(final_data);
        }
    }

    /// Like [`keep`](Self::keep), but if a node of this client at the same path is about to be removed, keeps
    /// that node if possible.
    pub(crate) fn keep_on(
        client: &Client,
        path: &str,
        data: Bytes,
        first: Option<&Arc<Preparation>>,
    ) -> Result<Self, Error> {
        Self::builder(client, path, data, first).take_over().start().map(Self::Kept)
    }

    /// Like [`keep`](Self::keep), but if a node of this client at the same path is about to be removed, waits
    /// for its removal first.
    pub(crate) async fn keep_when_vacant(
        client: &Client,
        path: &str,
        data: Bytes,
        first: Option<&Arc<Preparation>>,
    ) -> Result<Self, Error> {
        KeptNode::wait_vacant(client, path).await?;
        Self::keep(client, path, data, first)
    }

    pub(crate) fn persistent(
        client: &Client,
        path: String,
        data: Bytes,
        first: Option<&Arc<Preparation>>,
    ) -> Self {
        Self::Persistent(Persistent::new(client, path, data, first.cloned()))
    }

    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Kept(node) => node.path(),
            Self::Persistent(node) => node.path(),
        }
    }

    /// Sets the data that the servers must have from now on.
    pub(crate) fn want(&self, data: Bytes) {
        match self {
            Self::Kept(node) => node.set(data),
            Self::Persistent(node) => node.want(data),
        }
    }

    /// Waits until the servers have the instance that was wanted last. Returns false if none is wanted any
    /// more. If a predecessor's node exists, waits until its session must have ended.
    pub(crate) async fn written(&self) -> Result<bool, Error> {
        match self {
            Self::Kept(node) => kept::present(node).await.map(|()| true),
            Self::Persistent(node) => node.write().await,
        }
    }

    /// Waits for a state other than the last one returned. Returns `None` once the node is not kept any more.
    /// For a persistent node this is never known.
    pub(crate) async fn changed(&mut self) -> Option<RegistrationStatus> {
        match self {
            Self::Kept(node) => node.changed().await.map(RegistrationStatus::from),
            Self::Persistent(_) => std::future::pending().await,
        }
    }

    pub(crate) fn status(&self) -> RegistrationStatus {
        match self {
            Self::Kept(node) => node.status().into(),
            Self::Persistent(node) => {
                node.last_error().map_or(RegistrationStatus::Announced, RegistrationStatus::Failing)
            }
        }
    }

    /// Releases the node, because another one replaces it: from now on it is not written again. A kept node
    /// stays until [`leave`](Self::leave).
    pub(crate) fn release(&self) {
        if let Self::Persistent(node) = self {
            node.release();
        }
    }

    /// Removes a kept node in the background, even while others still hold this value.
    pub(crate) fn leave(&self) {
        if let Self::Kept(node) = self {
            node.request_removal();
        }
    }

    /// Removes the node as [`remove`](Self::remove) does. A kept node that is not deleted in time is deleted
    /// in the background.
    pub(crate) async fn deregister(&self) -> Result<Released, Error> {
        match self.remove().await {
            Ok(()) => Ok(Released::Done),
            Err(error) if self.is_kept() && error.kind() == ErrorKind::Timeout => Ok(Released::Pending),
            Err(error) => Err(error),
        }
    }

    fn is_kept(&self) -> bool {
        matches!(self, Self::Kept(_))
    }

    /// Removes a node that is not wanted any more, waiting until it is deleted.
    pub(crate) async fn remove(&self) -> Result<(), Error> {
        match self {
            Self::Kept(node) => {
                node.request_removal();
                node.removed().await
            }
            Self::Persistent(node) => node.remove().await,
        }
    }
}
