use super::group::Group;
use crate::kept;
use bytes::Bytes;
use docent_core::recipe::{KeptNode, KeptStatus};
use docent_core::{Error, ErrorKind};
use std::fmt;
use std::sync::Arc;

/// An own membership in a group. Made by [`Membership::join`](super::Membership::join).
///
/// Its node is kept present through lost links and new sessions; [`changed`](Self::changed) tells how it
/// stands.
///
/// # On drop
/// It leaves, in the background.
#[must_use = "the group is left when this is dropped"]
pub struct Member {
    group: Arc<Group>,
    id: Arc<str>,
    node: Option<KeptNode>,
}

/// State of an own membership.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Presence {
    /// The node is there, as far as the servers told.
    Present,
    /// The node is being made.
    Joining,
    /// A node of another session has the id. It is waited for.
    Occupied {
        /// The session that owns it.
        session_id: i64,
    },
    /// The node cannot be made. It is tried again.
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
        // An own node at this path may be about to go.
        KeptNode::wait_vacant(&group.client, &path).await?;
        let node = KeptNode::new(&group.client, &path, data.clone())?.labelled("member");
        kept::present(&node).await?;
        let id: Arc<str> = id.into();
        group.own().insert(Arc::clone(&id), data);
        Ok(Self { group: Arc::clone(group), id, node: Some(node) })
    }

    fn node(&self) -> &KeptNode {
        self.node.as_ref().expect("a member has its node until it leaves, and then it is consumed")
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of its node.
    pub fn path(&self) -> &str {
        self.node().path()
    }

    /// Data that the member gives about itself.
    pub fn data(&self) -> Bytes {
        self.group.own().get(&self.id).cloned().unwrap_or_default()
    }

    /// Changes the member's data. It is written in the background, while no server answers as soon as one
    /// does; where it is changed again meanwhile, only the last is sure to be written.
    pub fn set_data(&self, data: impl Into<Bytes>) {
        let data = data.into();
        let mut own = self.group.own();
        own.insert(Arc::clone(&self.id), data.clone());
        // While the group's own members are locked, so that both have the data that was set last.
        self.node().set(data);
    }

    /// State of the membership.
    pub fn presence(&self) -> Presence {
        self.node().status().into()
    }

    /// True while its node is there, as far as the servers told.
    pub fn is_present(&self) -> bool {
        matches!(self.node().status(), KeptStatus::Present { .. })
    }

    /// Waits until it stands otherwise than this saw last; `None` once the client is closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&mut self) -> Option<Presence> {
        let presence = Presence::from(self.node.as_mut()?.changed().await?);
        Some(presence).filter(|presence| !matches!(presence, Presence::Closed))
    }

    /// Leaves the group, and waits until the node is gone, at most for the operation timeout.
    ///
    /// # Errors
    /// `Timeout` when no server could be reached in time: it leaves in the background. `Closed`: the node
    /// goes with its session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: leaving goes on.
    pub async fn leave(mut self) -> Result<(), Error> {
        // Other clients' lists may tell of it before this group's own would.
        self.group.leave(&self.id);
        match self.node.take() {
            Some(node) => node.remove().await,
            None => Ok(()),
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
        // Of one that left somebody else may have the id by now.
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
