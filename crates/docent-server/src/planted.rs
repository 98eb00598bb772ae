//! Defects that can be planted into this build, one at a time, to check that the comparison with a real
//! server finds them, and the simulation those that its observers see. Some are found by a test of this
//! crate, which is named.
//!
//! All of this exists only with `--cfg docent_planted`. A defect is chosen by [`plant`], or by its name in
//! the environment variable `DOCENT_PLANTED`. The places in the code read `if planted!(WrongCversion)`.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Variable with the name of the defect to plant.
const VARIABLE: &str = "DOCENT_PLANTED";

/// The variable was not read yet.
const UNREAD: usize = usize::MAX;

/// Number of the defect in the catalogue, from 1; 0 for none.
static PLANTED: AtomicUsize = AtomicUsize::new(UNREAD);

/// Declares the catalogue with its names, and the tests that find a defect.
macro_rules! catalogue {
    ($($(#[$doc:meta])+ $defect:ident = $name:literal $(by $test:literal)?,)+) => {
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

            /// The test that finds it, as arguments of `cargo test`, the name last; `None` if a script or the
            /// simulation does.
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
    /// A file in which a server keeps its state is not locked.
    KeepFileUnlocked = "keep-file-unlocked"
        by "docent-server --test server keep::a_second_server_on_the_same_file_is_refused_until_the_first_has_stopped",
    /// A link is closed if the replies in all links are too large, as if it could not wait.
    ReadersExpelled = "readers-expelled"
        by "docent-server --test server limits::pressure::a_reply_waits_for_room_and_its_session_lives_meanwhile",
    /// A session expires while its request waits for other clients to read.
    WaitingSessionExpires = "waiting-session-expires"
        by "docent-server --test server limits::pressure::a_reply_waits_for_room_and_its_session_lives_meanwhile",
    /// A thread that logs waits until standard error accepts the line.
    LogsWait = "logs-wait"
        by "docent-server --test server stderr::a_thousand_refused_frames_hang_no_client_when_standard_error_is_not_read",
    /// Transaction numbers start above 2^53.
    ZxidsAboveDoubles = "zxids-above-doubles"
        by "docent-server --test server replaced::transactions_have_numbers_that_javascript_tells_apart",
}

/// Plants a defect in the place of the last one, in all servers of the process; `None` for no defect.
pub fn plant(defect: Option<Planted>) {
    PLANTED.store(defect.map_or(0, number), Ordering::Relaxed);
}

/// True when this defect is planted.
pub(crate) fn is(defect: Planted) -> bool {
    if PLANTED.load(Ordering::Relaxed) == UNREAD {
        let name = env::var(VARIABLE).unwrap_or_default();
        // It may be a defect of the client's catalogue.
        plant(Planted::ALL.iter().copied().find(|defect| defect.name() == name));
    }
    PLANTED.load(Ordering::Relaxed) == number(defect)
}

fn number(defect: Planted) -> usize {
    let place = Planted::ALL.iter().position(|other| *other == defect);
    place.map_or(0, |place| place + 1)
}
