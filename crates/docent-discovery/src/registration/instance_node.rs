use super::persistent::Persistent;
use super::{Announcer, RegistrationStatus};
use crate::{instance, kept};
use bytes::Bytes;
use docent_core::recipe::{KeptNode, KeptNodeBuilder, Shown};
use docent_core::{Error, ErrorKind, Released};
use std::time::Duration;

/// Node that announces an instance.
#[derive(Debug)]
pub(super) enum InstanceNode {
    Kept(KeptNode),
    Persistent(Persistent),
}

impl InstanceNode {
    fn builder(announcer: &Announcer, path: &str, data: Bytes) -> KeptNodeBuilder {
        let node = KeptNode::builder(&announcer.client, path).data(data).label("registration");
        node.preparation(announcer.preparation.as_ref()).let_others_choose(instance::read_choice)
    }

    /// Starts announcing, without waiting. If a node of this client at the same path is about to be removed,
    /// keeps that node if possible.
    pub(super) fn keep_on(announcer: &Announcer, path: &str, data: Bytes) -> Result<Self, Error> {
        Self::builder(announcer, path, data).take_over().start().map(Self::Kept)
    }

    /// Starts announcing. If a node of this client at the same path is about to be removed, waits for its
    /// removal first.
    pub(super) async fn keep_when_vacant(
        announcer: &Announcer,
        path: &str,
        data: Bytes,
    ) -> Result<Self, Error> {
        KeptNode::wait_vacant(&announcer.client, path).await?;
        Self::builder(announcer, path, data).start().map(Self::Kept)
    }

    pub(super) fn persistent(announcer: &Announcer, path: String, data: Bytes) -> Self {
        Self::Persistent(Persistent::new(announcer, path, data))
    }

    /// Returns true while another client wants the instance disabled.
    pub(super) fn is_disabled_by_others(&self) -> bool {
        matches!(self, Self::Kept(node) if node.shown() == Shown::FinalData)
    }

    /// Sets the data that a kept node gets before the client's shutdown removes it, or while another client
    /// wants the instance disabled.
    pub(super) fn set_final_data(&self, final_data: Option<(Bytes, Duration)>) {
        if let Self::Kept(node) = self {
            node.set_final_data(final_data);
        }
    }

    pub(super) fn path(&self) -> &str {
        match self {
            Self::Kept(node) => node.path(),
            Self::Persistent(node) => node.path(),
        }
    }

    /// Sets the data that the servers must have from now on.
    pub(super) fn want(&self, data: Bytes) {
        match self {
            Self::Kept(node) => node.set(data),
            Self::Persistent(node) => node.set_wanted(Some(data)),
        }
    }

    /// Waits until the servers have the instance that was wanted last. Returns false if none is wanted any
    /// more. If a predecessor's node exists, waits until its session must have ended.
    pub(super) async fn written(&self) -> Result<bool, Error> {
        match self {
            Self::Kept(node) => kept::present(node).await.map(|()| true),
            Self::Persistent(node) => node.write().await,
        }
    }

    /// Waits for a state other than the last one returned. Returns `None` once the node is not kept any more.
    /// For a persistent node this is never known.
    pub(super) async fn changed(&mut self) -> Option<RegistrationStatus> {
        match self {
            Self::Kept(node) => node.changed().await.map(RegistrationStatus::from),
            Self::Persistent(_) => std::future::pending().await,
        }
    }

    pub(super) fn status(&self) -> RegistrationStatus {
        match self {
            Self::Kept(node) => node.status().into(),
            Self::Persistent(node) => {
                node.last_error().map_or(RegistrationStatus::Announced, RegistrationStatus::Failing)
            }
        }
    }

    /// Releases the node, because another one replaces it: from now on it is not written again. A kept node
    /// stays until [`leave`](Self::leave).
    pub(super) fn release(&self) {
        if let Self::Persistent(node) = self {
            node.set_wanted(None);
        }
    }

    /// Removes a kept node in the background, even while others still hold this value.
    pub(super) fn leave(&self) {
        if let Self::Kept(node) = self {
            node.request_removal();
        }
    }

    /// Removes the node as [`remove`](Self::remove) does. A kept node that is not deleted in time is deleted
    /// in the background.
    pub(super) async fn deregister(&self) -> Result<Released, Error> {
        match self.remove().await {
            Ok(()) => Ok(Released::Done),
            Err(error) if matches!(self, Self::Kept(_)) && error.kind() == ErrorKind::Timeout => {
                Ok(Released::Pending)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes a node that is not wanted any more, waiting until it is deleted.
    pub(super) async fn remove(&self) -> Result<(), Error> {
        match self {
            Self::Kept(node) => {
                node.request_removal();
                node.removed().await
            }
            Self::Persistent(node) => node.remove().await,
        }
    }
}
