use super::RegistrationStatus;
use super::persistent::Persistent;
use crate::kept;
use bytes::Bytes;
use docent_core::recipe::KeptNode;
use docent_core::{Client, Error};
use std::time::Duration;

/// The node by which an instance is announced.
#[derive(Debug)]
pub(crate) enum InstanceNode {
    Kept(KeptNode),
    Persistent(Persistent),
}

impl InstanceNode {
    /// Begins to announce, without waiting.
    fn keep(client: &Client, path: &str, data: Bytes) -> Result<Self, Error> {
        KeptNode::new(client, path, data).map(Self::kept)
    }

    fn kept(node: KeptNode) -> Self {
        Self::Kept(node.labelled("registration"))
    }

    /// Sets the last words of a kept one.
    pub(crate) fn set_farewell(&self, farewell: Option<(Bytes, Duration)>) {
        if let Self::Kept(node) = self {
            node.set_farewell(farewell);
        }
    }

    /// As [`keep`](Self::keep), also with a node of ours at the same path that is about to go: then it stays,
    /// if it can.
    pub(crate) fn keep_on(client: &Client, path: &str, data: Bytes) -> Result<Self, Error> {
        KeptNode::take_over(client, path, data).map(Self::kept)
    }

    /// As [`keep`](Self::keep), once a node of ours at the same path that is about to go is gone.
    pub(crate) async fn keep_anew(client: &Client, path: &str, data: Bytes) -> Result<Self, Error> {
        KeptNode::wait_vacant(client, path).await?;
        Self::keep(client, path, data)
    }

    pub(crate) fn persistent(client: &Client, path: String, data: Bytes) -> Self {
        Self::Persistent(Persistent::new(client, path, data))
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

    /// Waits until the servers have the instance that was wanted last; false when by then none is wanted. A
    /// predecessor's node is waited for until its session must have ended.
    pub(crate) async fn written(&self) -> Result<bool, Error> {
        match self {
            Self::Kept(node) => kept::present(node).await.map(|()| true),
            Self::Persistent(node) => node.write().await,
        }
    }

    /// Waits until it stands otherwise than was seen last; `None` once it does not any more. Of a persistent
    /// one that is never known.
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

    /// Releases it, because another replaces it: from now on it is not written again. A kept one stays until
    /// it is told to [leave](Self::leave).
    pub(crate) fn release(&self) {
        if let Self::Persistent(node) = self {
            node.release();
        }
    }

    /// A kept node goes in the background, even if somebody still looks at it.
    pub(crate) fn leave(&self) {
        if let Self::Kept(node) = self {
            node.request_removal();
        }
    }

    /// Removes a node that is not wanted any more, and waits until it is gone.
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
