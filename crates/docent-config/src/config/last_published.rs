use crate::Revision;
use crate::history::{History, Listed, Obstacles, Plan};
use bytes::Bytes;
use docent_core::recipe::VersionedNode;
use docent_core::{Client, Error, Node, Stat, planted};
use futures_util::future::try_join;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
