use crate::Revision;
use crate::history::{History, Listed, Obstacles, Plan};
use bytes::Bytes;
use docent_core::recipe::VersionedNode;
use docent_core::{Client, Error, Node, Stat, planted};
use futures_util::future::try_join;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Last value that a `Config` published, with the history: the one that the next publish replaces, unless
/// somebody else writes.
#[derive(Default)]
pub(super) struct LastPublished(Mutex<Option<Published>>);

struct Published {
    revision: Revision,
    /// `None` for the first value of the node: it has no history.
    present: Option<Present>,
    /// How often the client had found the servers restored from an older copy.
    rollbacks: u64,
    /// True when it replaced a value of this `Config`, too: nobody else seems to write.
    is_alone: bool,
}

/// Value with its history, to be replaced by a publish.
#[derive(Clone)]
pub(super) struct Present {
    pub(super) node: Option<Node>,
    /// `None` where no history is kept, or none may be listed.
    pub(super) listed: Option<Listed>,
    /// True for one that was not read just now. The write of its successor is refused when it is not the one
    /// that is there.
    pub(super) is_guess: bool,
}

impl Present {
    /// The value and the history that a server has. Both are asked for before either is answered.
    pub(super) async fn read(versioned: &VersionedNode, history: &History) -> Result<Self, Error> {
        let (node, listed) = try_join(versioned.read(), history.list_kept(versioned)).await?;
        Ok(Self { node, listed, is_guess: false })
    }

    /// Changes to the history with a value of `length` bytes that replaces this one.
    pub(super) fn plan(&self, history: &History, length: usize, limit: usize, obstacles: &Obstacles) -> Plan {
        match (&self.node, &self.listed) {
            (Some(node), Some(listed)) => {
                let plan = history.plan(node, listed, length, limit, obstacles);
                if self.is_guess { plan.proving(listed) } else { plan }
            }
            _ => Plan::default(),
        }
    }

    /// The stat that the node must have when it is replaced; `None` where there must be none.
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

    /// The value that is there if nobody else has written, to be replaced without a look; `None` when it has
    /// to be read. `any` says that the next value is the same whatever is there.
    ///
    /// A node that was deleted and made anew may have the version of the known one by now. An earlier value
    /// in its history tells the two apart: its name has the transactions that wrote it and made the node.
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

    /// Forgets what is known: somebody else has written, or it cannot be told.
    pub(super) fn forget(&self) {
        *self.published() = None;
    }

    /// Notes that `data` was published in the place of `replaced`, with the changes to the history that were
    /// planned.
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
