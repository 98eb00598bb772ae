use crate::node::{is_own_path, is_proof};
use crate::operation::Shared;
use std::fmt;
use std::time::Duration;

/// Report of a [shutdown](crate::Client::shutdown): what was left behind, and what was cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Nodes that may exist until the servers expire their session: one
    /// [session timeout](Self::session_timeout) after the last request that the servers received in it. If
    /// the servers are down or elect a new leader, the time counts from their return. Empty if every session
    /// of the client is certain to have ended.
    ///
    /// Lists nodes whose creation the servers acknowledged. Nodes that block no other client are omitted: the
    /// client's own nodes in folders named `_docent`, and the second node of a claim, below the claimed item.
    pub left: Vec<ShutdownNode>,
    /// Guards that were still held when their time was up. They are lost with
    /// [`Closed`](crate::LostReason::Closed).
    pub held_on: Vec<ShutdownNode>,
    /// Timeout of the session that may live on; `None` if none does.
    pub session_timeout: Option<Duration>,
    /// Duration of the shutdown.
    pub took: Duration,
}

/// A node in a [`ShutdownReport`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ShutdownNode {
    /// Kind of the node's owner: the recipe's label as in metrics (`mutex`, `election`, `queue` …),
    /// `registration`, `member` or `kept_node`. If the owner is not known, `ticket` for a place in a line and
    /// `node` for any other node.
    pub kind: &'static str,
    /// Path of the node.
    pub path: String,
    /// Id of the session that owns the node.
    pub session_id: i64,
}

impl ShutdownReport {
    pub(super) fn of(shared: &Shared, took: Duration) -> Self {
        let generation = shared.generation();
        let (session, notes) = (&generation.session, &shared.notes);
        let (owned, id) = (session.owned(), session.id());
        // Nodes of older sessions that this session has replaced no longer exist.
        let mut left: Vec<_> = notes
            .lingering()
            .into_iter()
            .filter(|(older, _)| *older != id)
            .flat_map(|(older, paths)| paths.into_iter().map(move |path| (older, path)))
            .filter(|(_, path)| !owned.contains(path))
            .collect();
        if !session.has_certainly_ended() && !notes.has_ended(id) {
            left.extend(owned.into_iter().map(|path| (id, path)));
        }
        left.sort_unstable();
        let node = |kind, full: &str, session_id| {
            let path = shared.namespace.relative(full);
            ShutdownNode { kind, path, session_id }
        };
        let left: Vec<_> = left
            .iter()
            .map(|(id, full)| node(notes.kind(full), full, *id))
            .filter(|node| !is_mark(&node.path))
            .collect();
        let held_on = notes.still_held().iter().map(|(kind, full)| node(*kind, full, session.id())).collect();
        // A session that never reached a server has no timeout yet. The nodes left are then those of an older
        // session.
        let granted = Some(generation.lease.timeout()).filter(|timeout| !timeout.is_zero());
        let session_timeout = (!left.is_empty()).then(|| granted.unwrap_or(shared.config.session_timeout));
        Self { left, held_on, session_timeout, took }
    }

    /// Returns true if nothing was left behind and nothing was cut short.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty() && self.held_on.is_empty()
    }
}

/// Returns true for the path of a node that blocks no other client.
pub(super) fn is_mark(path: &str) -> bool {
    is_own_path(path) || path.rsplit('/').next().is_some_and(is_proof)
}

impl fmt::Display for ShutdownNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} of session {:#x}", self.kind, self.path, self.session_id)
    }
}

impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "closed after {:?}", self.took)?;
        list(f, "still held", &self.held_on)?;
        list(f, "left until the session ends", &self.left)
    }
}

fn list(f: &mut fmt::Formatter<'_>, heading: &str, nodes: &[ShutdownNode]) -> fmt::Result {
    for (index, node) in nodes.iter().enumerate() {
        let before = if index == 0 { format!("; {heading}: ") } else { ", ".to_owned() };
        write!(f, "{before}{node}")?;
    }
    Ok(())
}
