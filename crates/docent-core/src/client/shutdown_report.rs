use crate::node::{is_own_path, is_proof};
use crate::operation::Shared;
use std::fmt;
use std::time::Duration;

/// Report of a [shutdown](crate::Client::shutdown): what it left behind, and what it had to cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Nodes that may stand until the servers end their session: a
    /// [session timeout](Self::session_timeout) after they last heard of it, or, if they are down, or get a
    /// new leader, after they are back. Empty if every session of the client is certainly over.
    ///
    /// Those are named that the servers had acknowledged. Not named are nodes for which nobody waits: the
    /// client's own in folders called `_docent`, and the second node of a claim, below the claimed item.
    pub left: Vec<ShutdownNode>,
    /// Guards that were still held when the time for them was over: they are lost, by
    /// [`Closed`](crate::LostReason::Closed).
    pub held_on: Vec<ShutdownNode>,
    /// Timeout of the session that may live on; `None` when none does.
    pub session_timeout: Option<Duration>,
    /// Time that it took.
    pub took: Duration,
}

/// A node that a [`ShutdownReport`] is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ShutdownNode {
    /// Kind of its owner: the recipe's label, as metrics have it (`mutex`, `election`, `queue` …),
    /// `registration`, `member` or `kept_node`; `ticket` for another place in a line, `node` for any other.
    pub kind: &'static str,
    /// Its path.
    pub path: String,
    /// The session that owns it.
    pub session_id: i64,
}

impl ShutdownReport {
    pub(super) fn of(shared: &Shared, took: Duration) -> Self {
        let generation = shared.generation();
        let (session, notes) = (&generation.session, &shared.notes);
        let (owned, id) = (session.owned(), session.id());
        // Nodes of older sessions that this one has replaced are gone.
        let mut left: Vec<_> = notes
            .lingering()
            .into_iter()
            .filter(|(older, _)| *older != id)
            .flat_map(|(older, paths)| paths.into_iter().map(move |path| (older, path)))
            .filter(|(_, path)| !owned.contains(path))
            .collect();
        if !session.is_gone() && !notes.is_over(id) {
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
        let held_on = notes.held_on().iter().map(|(kind, full)| node(*kind, full, session.id())).collect();
        // A session that never came to a server has no timeout yet: an older one's nodes are left then.
        let granted = Some(generation.lease.timeout()).filter(|timeout| !timeout.is_zero());
        let session_timeout = (!left.is_empty()).then(|| granted.unwrap_or(shared.config.session_timeout));
        Self { left, held_on, session_timeout, took }
    }

    /// True when nothing was left behind and nothing cut short.
    pub fn is_clean(&self) -> bool {
        self.left.is_empty() && self.held_on.is_empty()
    }
}

/// True for the path of a node for which nobody waits.
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
        list(f, "held on", &self.held_on)?;
        list(f, "left to the end of the session", &self.left)
    }
}

fn list(f: &mut fmt::Formatter<'_>, what: &str, nodes: &[ShutdownNode]) -> fmt::Result {
    for (index, node) in nodes.iter().enumerate() {
        let before = if index == 0 { format!("; {what}: ") } else { ", ".to_owned() };
        write!(f, "{before}{node}")?;
    }
    Ok(())
}
