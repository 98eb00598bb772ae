use super::group::Group;
use crate::kept;
use bytes::Bytes;
use docent_core::recipe::{InOperation, KeptNode, KeptStatus};
use docent_core::{Error, ErrorKind, Released};
use std::fmt;
use std::sync::Arc;

/// A membership of this process in a group. Created by [`Membership::join`](super::Membership::join).
///
/// Its node is kept present through lost connections and new sessions; [`changed`](Self::changed) reports its
/// state.
///
/// # On drop
/// Leaves the group in the background.
#[must_use = "dropping the member leaves the group"]
pub struct Member {
    group: Arc<Group>,
    id: Arc<str>,
    node: Option<KeptNode>,
}

/// State of a [`Member`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Presence {
    /// The node exists, as far as the servers have reported.
    Present,
    /// The node is being created.
    Joining,
    /// A node of another session has the id. The client waits for the end of that session.
    Occupied {
        /// Session that owns the node.
        session_id: i64,
    },
    /// The node cannot be created. The client retries.
    Failing(Error),
    /// The client is closed.
    Closed,
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present => f.write_str("present"),
            Self::Joining => f.write_str("joining"),
            Self::Occupied { session_id } => write!(f, "occupied by the session {session_id:#x}"),
            Self::Failing(error) => write!(f, "failing: {error}"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

impl Member {
    pub(super) async fn join(group: &Arc<Group>, id: &str, data: Bytes) -> Result<Self, Error> {
        if id.is_empty() || id.contains('/') {
            let detail = format!("member id {id:?} must be one segment of a path");
            return Err(Error::invalid_input("join", detail));
        }
        let path = format!("{}/{id}", group.path);
        // A node of this client at this path may be about to be deleted.
        KeptNode::wait_vacant(&group.client, &path).await?;
        let node = KeptNode::builder(&group.client, &path).data(data.clone()).label("member").start()?;
        kept::present(&node).await?;
        let id: Arc<str> = id.into();
        group.own().insert(Arc::clone(&id), data);
        Ok(Self { group: Arc::clone(group), id, node: Some(node) })
    }

    fn node(&self) -> &KeptNode {
        self.node.as_ref().expect("a member has its node until it leaves, which consumes the member")
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the path of its node.
    pub fn path(&self) -> &str {
        self.node().path()
    }

    /// Returns the member's data.
    pub fn data(&self) -> Bytes {
        self.group.own().get(&self.id).cloned().unwrap_or_default()
    }

    /// Changes the member's data. The data is written in the background; if no server answers, as soon as one
    /// does. If the data is changed again meanwhile, only the last value is certain to be written.
    pub fn set_data(&self, data: impl Into<Bytes>) {
        let data = data.into();
        let mut own = self.group.own();
        own.insert(Arc::clone(&self.id), data.clone());
        // Set it while the group's own members are locked, so that both have the latest data.
        self.node().set(data);
    }

    /// Returns the state of the membership.
    pub fn presence(&self) -> Presence {
        self.node().status().into()
    }

    /// Returns true while the node exists, as far as the servers have reported.
    pub fn is_present(&self) -> bool {
        matches!(self.node().status(), KeptStatus::Present { .. })
    }

    /// Waits for a state other than the last one returned. Returns `None` once the client is closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<Presence> {
        let presence = Presence::from(self.node.as_mut()?.changed().await?);
        Some(presence).filter(|presence| !matches!(presence, Presence::Closed))
    }

    /// Leaves the group, waiting until the node is deleted, for at most the operation timeout. Returns
    /// [`Released::Pending`] if that takes longer: the member leaves in the background.
    ///
    /// # Errors
    /// `Closed`: the node is deleted with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe. The member still leaves.
    pub async fn leave(mut self) -> Result<Released, Error> {
        // Leave the local list first, because other clients may report the departure before this group would.
        self.group.leave(&self.id);
        match self.node.take() {
            Some(node) => node.remove().await.in_operation("leave"),
            None => Ok(Released::Done),
        }
    }
}

impl From<KeptStatus> for Presence {
    fn from(status: KeptStatus) -> Self {
        match status {
            KeptStatus::Present { .. } => Self::Present,
            KeptStatus::Occupied { session_id } => Self::Occupied { session_id },
            KeptStatus::Failing(error) if error.kind() == ErrorKind::Closed => Self::Closed,
            KeptStatus::Failing(error) => Self::Failing(error),
            KeptStatus::Removed => Self::Closed,
            _ => Self::Joining,
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // After a member has left, another member may have its id.
        if self.node.is_some() {
            self.group.leave(&self.id);
        }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("id", &self.id).field("node", &self.node).finish_non_exhaustive()
    }
}
