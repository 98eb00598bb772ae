use super::partitioner::{changed, known};
use crate::MultiGuard;
use docent_core::{ChildrenCache, Error, Fence, Lost, LostReason};
use std::fmt;
use std::future::{Future, pending};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Items that one member of a [`Partitioner`](crate::Partitioner) holds, each by a lock.
///
/// # On drop
/// The locks are released in the background. [`release`](Self::release) says when that is done.
#[must_use = "the items are released when the share is dropped"]
pub struct Share {
    items: Vec<String>,
    members: Vec<String>,
    /// `None` for a share without items.
    guard: Option<MultiGuard>,
    party: ChildrenCache,
    told: Mutex<Told>,
}

/// Reasons that [`Share::changed`] told by now.
struct Told {
    /// The members as of then.
    members: Vec<String>,
    lost: bool,
}

/// Reason for which a [`Share`] should be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShareEnd {
    /// A member came or went: others may wait for the items. They are held until the share is released.
    MembersChanged,
    /// The items are not held any more.
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
        let told = Mutex::new(Told { members: members.clone(), lost: false });
        Self { items, members, guard, party, told }
    }

    /// The items, sorted. None where there are more members than items.
    pub fn items(&self) -> &[String] {
        &self.items
    }

    /// Number of members that the items were shared among.
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// The locks of the items, for transactions and fences; `None` for a share without items.
    pub fn guard(&self) -> Option<&MultiGuard> {
        self.guard.as_ref()
    }

    /// The fencing token of an item; `None` for one that is not in this share.
    pub fn fence(&self, item: &str) -> Option<Fence> {
        let mut fences = self.guard.as_ref()?.fences();
        fences.find_map(|(path, fence)| (path.rsplit('/').next() == Some(item)).then_some(fence))
    }

    /// True while it is certain that all items are held, without I/O. A share without items always is.
    pub fn is_held(&self) -> bool {
        self.guard.as_ref().is_none_or(|guard| guard.is_held())
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the share should be given up, for another reason than it told before, and says why. `None`
    /// once it has told that the items are lost, or the client is closed.
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
            let told = self.told();
            if told.lost {
                return None;
            }
            told.members.clone()
        };
        tokio::select! {
            biased;
            reason = lost => {
                self.told().lost = true;
                Some(ShareEnd::Lost(reason))
            }
            changed = changed(&self.party, &mut events, &members) => {
                changed.ok()?;
                self.told().members = known(&self.party);
                Some(ShareEnd::MembersChanged)
            }
        }
    }

    /// True when the members are those that the items were shared among, as far as is known, and the items
    /// are held: no I/O.
    pub fn is_current(&self) -> bool {
        self.is_held() && known(&self.party) == self.members
    }

    /// Runs `future` for as long as all items are held; it goes on while members come and go.
    ///
    /// # Errors
    /// [`Lost`] as soon as an item is lost; `future` is dropped then.
    ///
    /// # Cancel safety
    /// As cancel safe as `future`.
    pub async fn run<F: Future>(&self, future: F) -> Result<F::Output, Lost> {
        match &self.guard {
            Some(guard) => guard.run(future).await,
            None => Ok(future.await),
        }
    }

    /// Releases the items and waits until their locks are free for others.
    ///
    /// # Errors
    /// As [`MultiGuard::release`].
    ///
    /// # Cancel safety
    /// This method is cancel safe: the release goes on in the background.
    pub async fn release(self) -> Result<(), Error> {
        match self.guard {
            Some(guard) => guard.release().await,
            None => Ok(()),
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
