//! Defects that can be planted into this build, one per process, to check that tests, checkers and the
//! simulation find them. If no run of the simulation shows a defect, the catalogue names a test that finds
//! it.
//!
//! All of this exists only with `--cfg docent_planted`. A defect is chosen once, before the first client is
//! built: by [`plant`], or by its name in the environment variable `DOCENT_PLANTED`, so that any test binary
//! can be run with it:
//!
//! ```text
//! RUSTFLAGS="--cfg docent_planted" DOCENT_PLANTED=no-owner-check cargo test --package docent-tests
//! ```
//!
//! The places in the code read `if planted!(NoOwnerCheck)`.

use std::env;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the defect to plant, for processes that do not call [`plant`].
pub const VARIABLE: &str = "DOCENT_PLANTED";

static PLANTED: OnceLock<Option<Planted>> = OnceLock::new();

static REACHED: AtomicU64 = AtomicU64::new(0);

/// Declares the catalogue with its names, and the tests that find a defect.
macro_rules! catalogue {
    ($($(#[$doc:meta])+ $defect:ident = $name:literal $(by $test:literal)?,)+) => {
        /// A bug that somebody could have written. Each breaks a promise that holds without it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Planted {
            $($(#[$doc])+ $defect,)+
        }

        impl Planted {
            /// The whole catalogue.
            pub const ALL: &[Self] = &[$(Self::$defect,)+];

            /// As it is written in [`VARIABLE`].
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$defect => $name,)+
                }
            }

            /// The test that finds it, as arguments of `cargo test`, the name last; `None` if the simulation
            /// does.
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
    /// A node that is found by its id after a lost reply is taken for a place in the line though an older
    /// session owns it, and a kept node of an older session counts as present.
    NoOwnerCheck = "no-owner-check",
    /// The outcome of a create, delete or exact write is looked up at a server that may not have caught up
    /// with its leader.
    NoSyncBeforeLookup = "no-sync-before-lookup",
    /// A waiter watches its predecessor by `exists`, which also answers for a node that is gone: it then
    /// waits for ever.
    ExistenceWatch = "existence-watch",
    /// The fence is the number at the end of the node's name, which begins anew when the line's node is made
    /// anew.
    FenceIsSequence = "fence-is-sequence",
    /// A guard whose lease ran out is held again as soon as a write is acknowledged.
    LostUnLoses = "lost-un-loses",
    /// Answers to reads and pings renew the lease, though a server that lost its leader gives them, too.
    LeaseFromReads = "lease-from-reads",
    /// The margin of the lease is 100 ms: neither the pace of heartbeats nor the relay and tick of the
    /// servers are counted.
    MarginWithoutRelayLag = "margin-without-relay-lag",
    /// A link is left only after nothing was sent over it for nearly the whole timeout, and the lease goes by
    /// the send time of a write alone, whatever the servers had heard before it.
    StaleByTimeout = "stale-by-timeout",
    /// The lease is computed from the largest timeout that was granted, and a smaller one cuts nothing.
    LargestTimeout = "largest-timeout",
    /// A waiter does not watch its own node: the fast hand-off is taken although that was deleted before.
    HandOffWithoutOwnWatch = "hand-off-without-own-watch",
    /// A session is closed as soon as the lease of a guard is over, while its work may still be stopping.
    SessionClosedAtLoss = "session-closed-at-loss",
    /// A close or shutdown ends the session as soon as its guards are lost, while their work may still be
    /// stopping.
    NoMarginAtClose = "no-margin-at-close",
    /// An operation under a guard goes on when the guard is lost.
    OperationOutlivesGuard = "operation-outlives-guard",
    /// A session that one server does not know counts as over, and its nodes as gone.
    ExpiredIsGone = "expired-is-gone",
    /// The node of a guard whose lease ran out is deleted at once and not a margin later.
    NodeDeletedAtLoss = "node-deleted-at-loss",
    /// A create whose reply was lost is sent again without looking whether it was applied.
    BlindCreateRetry = "blind-create-retry",
    /// A draw that is cancelled while its create is under way leaves the node in the line.
    CleanupForgottenOnCancel = "cleanup-forgotten-on-cancel",
    /// An owner re-enters a hold that is lost, also when its session is over.
    ReentryNotBoundToGeneration = "reentry-not-bound-to-generation",
    /// A waiter whose predecessor is gone takes its turn without a look at the others ahead.
    WakeUpIsGrant = "wake-up-is-grant",
    /// A listing in which nobody is ahead makes a waiter first, whether or not its own node is in it, which
    /// it does not watch either.
    GrantWithoutOwnNode = "grant-without-own-node",
    /// A waiter that watches the one before its predecessor takes that one's end for the predecessor's.
    OneBeforeIsPredecessor = "one-before-is-predecessor",
    /// A delete that was not acknowledged because the link was lost counts as done.
    FailedDeleteForgotten = "failed-delete-forgotten",
    /// A request that was written and not answered counts as not sent: it is sent again, whatever it does.
    UnknownIsNotSent = "unknown-is-not-sent",
    /// A guard is held until the task that keeps the lease has marked it lost: after a pause it is believed
    /// for a moment.
    CheckWithoutClock = "check-without-clock",
    /// A reader takes its turn whether or not a writer is ahead of it.
    ReaderIgnoresWriter = "reader-ignores-writer",
    /// A writer that steps down takes a new ticket for its reader, at the end of the line.
    DowngradeTakesNewPlace = "downgrade-takes-new-place",
    /// A waiter for permits goes by the limit that it knows, which may be older than its listing of permits.
    StaleLimit = "stale-limit",
    /// A set of locks that could not be acquired as a whole keeps the locks it had taken.
    PartOfSetKept = "part-of-set-kept",
    /// A double barrier lets members in that find `ready` there, also where an earlier round left that
    /// behind.
    ReadyOfEarlierRound = "ready-of-earlier-round",
    /// Work is polled on after its term of leadership was lost, until it is done.
    WorkGoesOnAfterLoss = "work-goes-on-after-loss",
    /// A candidate whose session ended while it led does not campaign again, and tells nobody.
    OutAfterSessionEnd = "out-after-session-end",
    /// A new leader does not wait, whether its predecessor resigned or not.
    TakeoverDelayForgotten = "takeover-delay-forgotten",
    /// An item of a queue is deleted when it is handed out, before it is worked on.
    DeleteBeforeProcessing = "delete-before-processing",
    /// A claim whose reply was lost counts as ours when no claim is found: that there is none is taken for
    /// there being no other.
    NoNodeIsClaim = "no-node-is-claim",
    /// A put whose marker went with its session is sent again: that there is none is taken for the put not
    /// having been applied.
    PutRetriedOnAbsence = "put-retried-on-absence",
    /// An idle consumer watches the folder of the items alone, which says nothing when a claim ends.
    FreedClaimNotNoticed = "freed-claim-not-noticed",
    /// Items of a queue are claimed without being counted as handed out.
    HandOutNotCounted = "hand-out-not-counted",
    /// Of the idle consumers of a queue only the first looks for items, also when it is dead.
    OthersDoNotLook = "others-do-not-look",
    /// Of the idle consumers of a queue the first two look for items alone, also when both are dead.
    DeadHoldLineUp = "dead-hold-line-up",
    /// A consumer at the head of the line of the idle stays there beside a free item that it cannot decode,
    /// and those behind it do not look for items.
    RefusedNotPassedOn = "refused-not-passed-on",
    /// A consumer moves an item that it cannot decode to the dead letters once it has known the item for long
    /// enough, whoever worked on it meanwhile.
    BuriedBesideOthers = "buried-beside-others",
    /// In ordered mode a consumer takes the next item where it cannot decode the first.
    SecondBeforeFirst = "second-before-first",
    /// An item that was claimed for a call which is gone stays claimed.
    LateClaimForgotten = "late-claim-forgotten",
    /// An item that was claimed for a call stays claimed for as long as that is not polled.
    OfferStandsForEver = "offer-stands-for-ever",
    /// An acknowledgement deletes the item, and leaves its claim behind.
    ClaimLeftBehind = "claim-left-behind",
    /// The marker of an exact write is set whatever its version, and one that does not show the write is
    /// taken for proof that the write never will be applied.
    MarkerWithoutVersion = "marker-without-version",
    /// A create without a reply that was not found is taken for one that never will be applied.
    LostCreateForgotten = "lost-create-forgotten",
    /// A claim is taken for the same as long as there is one at its path, whoever made that.
    ClaimUnchecked = "claim-unchecked",
    /// A claim is handed out while the proof of an earlier claim exists, whose holder can still write.
    EarlierProofStays = "earlier-proof-stays",
    /// The announcement of an instance first deletes any node at its path, also one that another process
    /// announced.
    BlindDelete = "blind-delete",
    /// A kept node counts as it was seen last, also after its watch has fired or its link is gone.
    KnownWithoutWatch = "known-without-watch",
    /// The end of a registration deletes the node at its path without a look, whoever made it.
    DeletedUnseen = "deleted-unseen",
    /// A cache lists its folder again after a lost link, and reads only the children that are new there.
    NoReadOnReconnect = "no-read-on-reconnect",
    /// A cache with a persistent watch takes itself for up to date once that is set again on a new link, and
    /// does not read what changed while there was none.
    GapTakenForTold = "gap-taken-for-told",
    /// A link is made to any server, also one that lags behind the transactions seen, and values of a
    /// configuration go back.
    OlderAfterNewer = "older-after-newer",
    /// A value of a configuration that is replaced without a look is replaced whatever its version.
    GuessedVersionNotSent = "guessed-version-not-sent",
    /// The transaction in the header of an event counts as seen although more events of it may follow: where
    /// the link is lost in between, those changes are never seen.
    FoldedZxid = "folded-zxid",
    /// Parts of two states of a view count as the same when they are of the same length.
    PartsByLength = "parts-by-length",
    /// A ticket that tasks of a process share is passed on after it was lost, as one that is held.
    TurnAfterLoss = "turn-after-loss",
    /// A ticket that tasks of a process share is passed on for as long as one waits, whatever the limit.
    TurnsWithoutLimit = "turns-without-limit",
    /// A task that is given up at the moment at which it gets its turn keeps that for good.
    TurnForgottenOnCancel = "turn-forgotten-on-cancel",
    /// Ids are counted from a number that forked processes share, and what is found by an id is taken for a
    /// node of the own session, whichever made it.
    IdsOfTheProcess = "ids-of-the-process",
    /// The folder of clients' own nodes has the access control list of the client that was first there, and
    /// no other place is looked for.
    OwnFolderOfTheFirst = "own-folder-of-the-first",
    /// A service is not shown as long as one of its instances cannot be read.
    BadNodeSpoilsList = "bad-node-spoils-list",
    /// The fence is the number of the client's session, which all its guards have.
    FenceOfTheSession = "fence-of-the-session",
    /// All waiters of a line watch the first contender instead of their predecessor.
    AllWatchTheFirst = "all-watch-the-first",
    /// A release returns before the node is deleted.
    ReleaseNotAwaited = "release-not-awaited",
    /// An acquire with a timeout waits for twice as long.
    TimeoutDoubled = "timeout-doubled",
    /// A reader waits for the readers ahead of it, too.
    ReaderWaitsForReaders = "reader-waits-for-readers",
    /// A reader that was a writer has a fence of its own node instead of the writer's.
    DowngradeLosesFence = "downgrade-loses-fence",
    /// The transaction of a guard does not check that the guard's node is there.
    TransactionUnchecked = "transaction-unchecked",
    /// Work under a leadership that ran out is polled on for the longest grace, whichever was asked for.
    GraceIsMargin = "grace-is-margin",
    /// A waiter notices only after five seconds that its predecessor has left.
    WaiterSleepsOn = "waiter-sleeps-on",
    /// Neither its watch nor a heartbeat tells a holder that somebody deleted its node.
    OwnDeletionUnseen = "own-deletion-unseen",
    /// The work of a leader is dropped after five seconds, though its term is not lost.
    TermEndsByItself = "term-ends-by-itself",
    /// Who looks on at an election is told of no leader after the first.
    OnlookerStopsLooking = "onlooker-stops-looking",
    /// A set of locks counts as held, though one was lost while another was waited for.
    SetUnproven = "set-unproven",
    /// A member leaves a double barrier without waiting for the others.
    LeavesAtOnce = "leaves-at-once",
    /// A waiter goes on while the barrier is set.
    BarrierIgnored = "barrier-ignored",
    /// A view removes an instance at once, whatever its grace is.
    GraceForgotten = "grace-forgotten",
    /// An exact write without a reply is sent again without a look at its marker.
    ExactWriteSentAgain = "exact-write-sent-again",
    /// A compare and swap sets the node whatever its version.
    CasWithoutVersion = "cas-without-version",
    /// The lost links of a client are counted from zero in each session.
    SuspensionsOfTheSession = "suspensions-of-the-session",
    /// A call has twice its operation timeout.
    DeadlineDoubled = "deadline-doubled",
    /// The close of a client returns before its session has ended.
    CloseNotAwaited = "close-not-awaited",
    /// A shutdown takes guards away without notifying their holders first.
    ShutdownNotAnnounced = "shutdown-not-announced"
        by "docent-tests --test election batteries::embedded::a_leader_is_told_of_a_shutdown",
    /// A session counts as closed once the request to close it was written, also when the link is lost before
    /// the answer.
    CloseNotRepeated = "close-not-repeated"
        by "docent-core --lib session::own::machine::tests::end::a_close_without_an_answer_is_sent_again_on_the_next_link",
    /// A link that is lost while the folder of a client's own nodes is created is reported as the absence of
    /// the node that was to be written.
    NoFolderIsNoNode = "no-folder-is-no-node"
        by "docent-tests --test queue folders::embedded::a_purge_deletes_what_is_there_though_links_are_lost_while_folders_are_created",
    /// A request on which servers close the link is sent again on each new link until its time is over.
    TooLargeForEver = "too-large-for-ever"
        by "docent-tests --test core oversize::embedded::a_write_above_the_servers_limit_fails_after_the_second_lost_link",
    /// A recipe warns about its own node in a line as if another program had created it.
    OwnChildIsForeign = "own-child-is-foreign"
        by "docent-tests --test core said_once::embedded::a_timed_lease_does_not_warn_of_its_own_node",
    /// A chroot may contain a comma: `h1/a,h2/a` is parsed as one server with the chroot `/a,h2/a`.
    CommaInChroot = "comma-in-chroot"
        by "docent-core --lib session::connect_string::tests::bad_input_is_named_with_the_rule",
    /// A timed lease that finds its old slot taken does not try the others.
    OldSlotAlone = "old-slot-alone"
        by "docent-tests --test locks timed_lease::embedded::one_that_lost_the_race_for_its_old_slot_takes_another_that_is_free",
    /// A leader's term is written into a container node, which the servers delete with the term once there is
    /// no candidate.
    TermInContainer = "term-in-container"
        by "docent-tests --test election takeover::embedded::a_term_is_kept_while_nobody_stands_also_in_a_container_that_predates_the_setting",
    /// An item that is given back with a delay keeps its claim until the delay is over.
    ClaimKeptForLater = "claim-kept-for-later"
        by "docent-tests --test queue later::embedded::jobs_given_back_for_later_use_up_none_of_the_sessions_nodes",
    /// Queues of Curator's layout with one lock path share claims, idle consumers and dead letters.
    QueuesShareLockPath = "queues-share-lock-path"
        by "docent-tests --test queue layouts::embedded::two_queues_with_one_lock_path_have_consumers_and_dead_letters_of_their_own",
    /// A put into a simple queue that has run out of sequence numbers reports `NodeExists`.
    CounterEndIsNodeExists = "counter-end-is-node-exists"
        by "docent-tests --test queue simple::a_simple_queue_whose_numbers_are_used_up_says_so",
    /// A local snapshot is used even if it belongs to another node, chroot or namespace.
    SnapshotOfAnyNode = "snapshot-of-any-node"
        by "docent-config --lib file::tests::what_is_no_whole_snapshot_of_the_path_is_not_taken",
}

/// Plants the defect of this name, whatever [`VARIABLE`] says.
///
/// # Errors
/// [`PlantError::Unknown`] when there is none; [`PlantError::TooLate`] when code with defects was run before.
pub fn plant(name: &str) -> Result<(), PlantError> {
    let defect = name.parse()?;
    if *PLANTED.get_or_init(|| Some(defect)) == Some(defect) {
        Ok(())
    } else {
        Err(PlantError::TooLate(defect))
    }
}

/// The defect of this process.
///
/// # Panics
/// When [`VARIABLE`] holds no name of the catalogue: a run that plants nothing would prove nothing.
pub fn planted() -> Option<Planted> {
    *PLANTED.get_or_init(|| {
        let name = env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
        match name.parse() {
            Ok(defect) => Some(defect),
            Err(error) => panic!("{VARIABLE}: {error}"),
        }
    })
}

/// True when this defect is planted.
pub fn is(defect: Planted) -> bool {
    let here = planted() == Some(defect);
    if here {
        REACHED.fetch_add(1, Ordering::Relaxed);
    }
    here
}

/// Number of times that the code came to the place of the defect. With 0 nothing was tried; more does not say
/// that anything went wrong.
pub fn reached() -> u64 {
    REACHED.load(Ordering::Relaxed)
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Planted {
    type Err = PlantError;

    fn from_str(name: &str) -> Result<Self, PlantError> {
        let found = Self::ALL.iter().copied().find(|defect| defect.name() == name);
        found.ok_or_else(|| PlantError::Unknown(name.to_owned()))
    }
}

/// Reason why a defect was not planted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlantError {
    /// The catalogue does not have it.
    #[error("defect {0:?} is not in the catalogue")]
    Unknown(String),
    /// Code that may have defects was run before.
    #[error("defect \"{0}\" must be planted before the first client is built, and no other with it")]
    TooLate(Planted),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_is_found_by_its_name() {
        for defect in Planted::ALL {
            assert_eq!(defect.to_string().parse(), Ok(*defect));
        }
        assert_eq!("no-such".parse::<Planted>(), Err(PlantError::Unknown("no-such".to_owned())));
    }
}
