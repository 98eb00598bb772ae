//! Defects that can be planted into this build, one at a time. They check that the comparison with a real
//! server, and the observers of the simulation, find such defects. Some defects are found by a test of this
//! crate, which the catalogue names.
//!
//! This module exists only with `--cfg docent_planted`. A defect is selected by [`plant`], or by its name in
//! the environment variable `DOCENT_PLANTED`. The code contains each defect as `if planted!(WrongCversion)`.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Environment variable with the name of the defect to plant.
const VARIABLE: &str = "DOCENT_PLANTED";

/// Value of [`PLANTED`] before the variable is read.
const UNREAD: usize = usize::MAX;

/// Number of the planted defect in the catalogue, from 1; 0 for none.
static PLANTED: AtomicUsize = AtomicUsize::new(UNREAD);

/// Declares the catalogue: the defects, their names, and the tests that find them.
macro_rules! catalogue {
    ($($(#[$doc:meta])+ $defect:ident = $name:literal $(by $test:literal)?,)+) => {
        /// A plausible programming error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Planted {
            $($(#[$doc])+ $defect,)+
        }

        impl Planted {
            /// All defects of the catalogue.
            pub const ALL: &[Self] = &[$(Self::$defect,)+];

            /// Returns the name of the defect.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$defect => $name,)+
                }
            }

            /// Returns the arguments of `cargo test` for the test that finds the defect, with the test's name
            /// last; `None` if a script or the simulation finds it.
            pub const fn test(self) -> Option<&'static str> {
                match self {
                    $(Self::$defect => catalogue!(@test $($test)?),)+
                }
            }
        }
    };
    (@test) => { None };
    (@test $test:literal) => { Some($test) };
}

catalogue! {
    /// The version of the set of children only counts creates.
    WrongCversion = "wrong-cversion",
    /// A delete is not recorded as the parent's last transaction.
    StalePzxid = "stale-pzxid",
    /// A watch on the children of a node does not report the node's deletion.
    LostWatchOnDelete = "lost-watch-on-delete",
    /// In a failed multi, operations before the one that failed are applied.
    WrongMultiRollback = "wrong-multi-rollback",
    /// Removed watches stay set.
    EventAfterRemoveWatches = "event-after-remove-watches",
    /// A one-shot watch stays set after it has fired.
    OneShotStays = "one-shot-stays",
    /// Watches of a lost link stay set for the next link of the session.
    WatchesOutliveLink = "watches-outlive-link",
    /// Re-registered watches do not report a deletion.
    MissedDeletion = "missed-deletion",
    /// Data is set without permission.
    WriteWithoutPermission = "write-without-permission",
    /// One ephemeral node survives the end of its session.
    EphemeralOutlivesSession = "ephemeral-outlives-session",
    /// The number of a sequential node is the number of existing children.
    SequenceCountsChildren = "sequence-counts-children",
    /// Events about a node are sent to sessions that may not read it.
    EventWithoutPermission = "event-without-permission",
    /// A recursive watch does not report deletions below its node's grandchildren.
    RecursiveMissesDeepDeletes = "recursive-misses-deep-deletes",
    /// A persistent watch is removed after it has fired once.
    PersistentFiresOnce = "persistent-fires-once",
    /// Recursive watches are not re-registered.
    RecursiveNotSetAgain = "recursive-not-set-again",
    /// A session that watches a node's data and its children gets two events for its deletion.
    DeletionToldTwice = "deletion-told-twice",
    /// The number of descendants of a node is the number of its children.
    ChildrenCountedAlone = "children-counted-alone",
    /// Every session's list of ephemeral nodes is that of the oldest session.
    EphemeralsOfAnother = "ephemerals-of-another",
    /// The file in which a server stores its state is not locked.
    KeepFileUnlocked = "keep-file-unlocked"
        by "docent-server --test server keep::a_second_server_on_the_same_file_is_refused_until_the_first_has_stopped",
    /// A link is closed when the replies in all links are too large, although it could wait.
    ReadersExpelled = "readers-expelled"
        by "docent-server --test server limits::pressure::a_reply_waits_for_room_and_its_session_lives_meanwhile",
    /// A session expires while its request waits for other clients to read.
    WaitingSessionExpires = "waiting-session-expires"
        by "docent-server --test server limits::pressure::a_reply_waits_for_room_and_its_session_lives_meanwhile",
    /// A thread that logs waits until standard error accepts the line.
    LogsWait = "logs-wait"
        by "docent-server --test server stderr::a_thousand_refused_frames_hang_no_client_when_standard_error_is_not_read",
    /// Transaction ids start above 2^53.
    ZxidsAboveDoubles = "zxids-above-doubles"
        by "docent-server --test server replaced::transaction_numbers_stay_distinct_in_javascript",
}

/// Plants a defect in all servers of the process, in place of the previous one; `None` for no defect.
pub fn plant(defect: Option<Planted>) {
    PLANTED.store(defect.map_or(0, number), Ordering::Relaxed);
}

/// Returns whether this defect is planted.
pub(crate) fn is(defect: Planted) -> bool {
    if PLANTED.load(Ordering::Relaxed) == UNREAD {
        let name = env::var(VARIABLE).unwrap_or_default();
        // The name may belong to the client's catalogue.
        plant(Planted::ALL.iter().copied().find(|defect| defect.name() == name));
    }
    PLANTED.load(Ordering::Relaxed) == number(defect)
}

fn number(defect: Planted) -> usize {
    let place = Planted::ALL.iter().position(|other| *other == defect);
    place.map_or(0, |place| place + 1)
}
