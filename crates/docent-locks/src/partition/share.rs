use super::partitioner::{changed, current_members};
use crate::MultiGuard;
use docent_core::{ChildrenCache, Error, Fence, Lost, LostReason, Released};
use std::fmt;
use std::future::{Future, pending};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Items that one member of a [`Partitioner`](crate::Partitioner) holds, each by a lock.
///
/// # On drop
/// The locks are released in the background. Call [`release`](Self::release) to wait until the nodes are
/// deleted.
#[must_use = "the items are released when the share is dropped"]
pub struct Share {
    items: Vec<String>,
    members: Vec<String>,
    /// `None` for a share without items.
    guard: Option<MultiGuard>,
    party: ChildrenCache,
    reported: Mutex<Reported>,
}

/// State that [`Share::changed`] has reported so far.
struct Reported {
    /// Members at the time of the last report.
    members: Vec<String>,
    lost: bool,
}

/// Reason for which a [`Share`] should be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShareEnd {
    /// A member joined or left, so other members may wait for the items. The items are held until the share
    /// is released.
    MembersChanged,
    /// The items are no longer held.
    Lost(LostReason),
}

impl fmt::Display for ShareEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MembersChanged => f.write_str("members changed"),
            Self::Lost(reason) => write!(f, "lost: {reason}"),
        }
    }
}

impl Share {
    pub(super) fn new(
        items: Vec<String>,
        members: Vec<String>,
        guard: Option<MultiGuard>,
        party: ChildrenCache,
    ) -> Self {
        let reported = Mutex::new(Reported { members: members.clone(), lost: false });
        Self { items, members, guard, party, reported }
    }

    /// Returns the items, sorted. May be empty if there are more members than items.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// Returns the number of members among which the items were distributed.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Returns the locks of the items, for transactions and fences; `None` for a share without items.
    pub fn guard(&self) -> Option<&MultiGuard> {
        self.guard.as_ref()
    }

    /// Returns the fencing token of an item, or `None` if the item is not in this share.
    pub fn fence(&self, item: &str) -> Option<Fence> {
        let mut fences = self.guard.as_ref()?.fences();
        fences.find_map(|(path, fence)| (path.rsplit('/').next() == Some(item)).then_some(fence))
    }

    /// Returns whether all items are certainly held. Does no I/O. Always true for a share without items.
    pub fn is_held(&self) -> bool {
        self.guard.as_ref().is_none_or(|guard| guard.is_held())
    }

    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the share should be given up for a reason that was not reported before, and returns the
    /// reason. Returns `None` if the loss of the items was already reported, or if the client is closed.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn changed(&self) -> Option<ShareEnd> {
        let mut events = self.party.changes();
        let lost = async {
            match &self.guard {
                Some(guard) => guard.lost().await,
                None => pending().await,
            }
        };
        let members = {
            let reported = self.reported();
            if reported.lost {
                return None;
            }
            reported.members.clone()
        };
        tokio::select! {
            biased;
            reason = lost => {
                self.reported().lost = true;
                Some(ShareEnd::Lost(reason))
            }
            changed = changed(&self.party, &mut events, &members) => {
                changed.ok()?;
                self.reported().members = current_members(&self.party);
                Some(ShareEnd::MembersChanged)
            }
        }
    }

    /// Returns whether the members known now are those among which the items were distributed, and the items
    /// are held. Does no I/O.
    pub fn is_current(&self) -> bool {
        self.is_held() && current_members(&self.party) == self.members
    }

    /// Runs `future` while all items are held. The future keeps running when members join or leave.
    ///
    /// # Errors
    /// [`Lost`] as soon as an item is lost; `future` is then dropped.
    ///
    /// # Cancel safety
    /// This method is cancel safe if `future` is.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        match &self.guard {
            Some(guard) => guard.run(future).await,
            None => Ok(future.await),
        }
    }

    /// Releases the items and waits until their locks are free, as [`MultiGuard::release`] does. A share
    /// without items returns [`Released::Done`].
    ///
    /// # Errors
    /// Those of [`MultiGuard::release`].
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release continues in the background.
    pub async fn release(self) -> Result<Released, Error> {
        match self.guard {
            Some(guard) => guard.release().await,
            None => Ok(Released::Done),
        }
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Share")
            .field("items", &self.items)
            .field("members", &self.members.len())
            .field("is_held", &self.is_held())
            .finish_non_exhaustive()
    }
}
