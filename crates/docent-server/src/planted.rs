//! Defects that can be planted into this build, one at a time, to check that the comparison with a real
//! server finds them.
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
    /// Who may not read a node hears of its changes.
    EventWithoutPermission = "event-without-permission",
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
