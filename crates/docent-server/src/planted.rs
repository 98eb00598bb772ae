//! Defects that can be planted into this build, one at a time, to check that the comparison with a real
//! server finds them, and the simulation those that its observers see.
//!
//! All of this exists only with `--cfg docent_planted`. The places in the code read
//! `if planted!(WrongCversion)`.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of the defect in the catalogue, from 1; 0 for none.
static PLANTED: AtomicUsize = AtomicUsize::new(0);

/// Declares the catalogue with its names.
macro_rules! catalogue {
    ($($(#[$doc:meta])+ $defect:ident = $name:literal,)+) => {
        /// A bug that somebody could have written.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Planted {
            $($(#[$doc])+ $defect,)+
        }

        impl Planted {
            /// The whole catalogue.
            pub const ALL: &[Self] = &[$(Self::$defect,)+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$defect => $name,)+
                }
            }
        }
    };
}

catalogue! {
    /// The version of the set of children counts creates alone.
    WrongCversion = "wrong-cversion",
    /// The transaction of a delete is not noted at the parent.
    StalePzxid = "stale-pzxid",
    /// A watch on the children of a node says nothing of the node's deletion.
    LostWatchOnDelete = "lost-watch-on-delete",
    /// Operations of a multi before the one that failed are applied.
    WrongMultiRollback = "wrong-multi-rollback",
    /// Watches that are removed stay.
    EventAfterRemoveWatches = "event-after-remove-watches",
    /// A watch that came true once stays.
    OneShotStays = "one-shot-stays",
    /// Watches of a link that was lost stay for the next link of the session.
    WatchesOutliveLink = "watches-outlive-link",
    /// Watches that are set again say nothing of a deletion.
    MissedDeletion = "missed-deletion",
    /// Data is set without permission.
    WriteWithoutPermission = "write-without-permission",
    /// One node stays when its session ends.
    EphemeralOutlivesSession = "ephemeral-outlives-session",
    /// The number of a sequential node counts the children that are there.
    SequenceCountsChildren = "sequence-counts-children",
    /// Events of a node are told to sessions that may not read it.
    EventWithoutPermission = "event-without-permission",
    /// A recursive watch says nothing of deletions further down than its node's grandchildren.
    RecursiveMissesDeepDeletes = "recursive-misses-deep-deletes",
    /// A persistent watch is gone once it came true.
    PersistentFiresOnce = "persistent-fires-once",
    /// Recursive watches are not set again.
    RecursiveNotSetAgain = "recursive-not-set-again",
    /// A session that watches a node's data and its children is told twice of its deletion.
    DeletionToldTwice = "deletion-told-twice",
    /// The number of nodes below a node is that of its children.
    ChildrenCountedAlone = "children-counted-alone",
    /// The ephemeral nodes of the oldest session are listed as those of each.
    EphemeralsOfAnother = "ephemerals-of-another",
}

/// Plants a defect in the place of the last one, in all servers of the process; `None` for no defect.
pub fn plant(defect: Option<Planted>) {
    let place = |defect| Planted::ALL.iter().position(|other| *other == defect);
    PLANTED.store(defect.and_then(place).map_or(0, |place| place + 1), Ordering::Relaxed);
}

/// True when this defect is planted.
pub(crate) fn is(defect: Planted) -> bool {
    let planted = PLANTED.load(Ordering::Relaxed).checked_sub(1);
    planted.and_then(|place| Planted::ALL.get(place)) == Some(&defect)
}
