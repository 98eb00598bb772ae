//! Defects that can be planted into this build, one per process, to check that tests, checkers and the
//! simulation find them. If no run of the simulation reveals a defect, the catalogue names a test that does.
//!
//! This module exists only with `--cfg docent_planted`. A defect is chosen once, before the first client is
//! built: by [`plant`], or by its name in the environment variable `DOCENT_PLANTED`, so that any test binary
//! can run with a defect:
//!
//! ```text
//! RUSTFLAGS="--cfg docent_planted" DOCENT_PLANTED=no-owner-check cargo test --package docent-tests
//! ```
//!
//! Code with a defect contains `if planted!(NoOwnerCheck)`.

use std::env;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Environment variable with the name of the defect, for processes that do not call [`plant`].
pub const VARIABLE: &str = "DOCENT_PLANTED";

static PLANTED: OnceLock<Option<Planted>> = OnceLock::new();

static REACHED: AtomicU64 = AtomicU64::new(0);

/// Declares the catalogue: the defects, their names, and the tests that find them.
macro_rules! catalogue {
    ($($(#[$doc:meta])+ $defect:ident = $name:literal $(by $test:literal)?,)+) => {
        /// A plausible bug. Each one breaks a guarantee that holds without it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Planted {
            $($(#[$doc])+ $defect,)+
        }

        impl Planted {
            /// The whole catalogue.
            pub const ALL: &[Self] = &[$(Self::$defect,)+];

            /// Returns the name, as written in [`VARIABLE`].
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$defect => $name,)+
                }
            }

            /// Returns the test that finds the defect, as arguments of `cargo test`, with the test's name
            /// last. Returns `None` if the simulation finds it.
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
    /// A node that is found by its id after a lost reply is accepted as a place in the line although an older
    /// session owns it. A kept node of an older session counts as present.
    NoOwnerCheck = "no-owner-check",
    /// The outcome of a create, delete or exact write is looked up at a server that may lag behind its
    /// leader.
    NoSyncBeforeLookup = "no-sync-before-lookup",
    /// A waiter watches its predecessor by `exists`, which also succeeds for a deleted node, so the waiter
    /// never wakes.
    ExistenceWatch = "existence-watch",
    /// The fence is the sequence number of the node's name, which restarts when the line's node is
    /// re-created.
    FenceIsSequence = "fence-is-sequence",
    /// A guard whose lease ran out is held again as soon as a write is acknowledged.
    LostUnLoses = "lost-un-loses",
    /// Answers to reads and pings renew the lease, although a server that lost its leader sends them, too.
    LeaseFromReads = "lease-from-reads",
    /// The margin of the lease is 100 ms, and ignores the pace of heartbeats and the relay and tick of the
    /// servers.
    MarginWithoutRelayLag = "margin-without-relay-lag",
    /// A link is abandoned only after nothing was sent over it for nearly the whole timeout. The lease
    /// depends only on the send time of a write, whatever the servers had received before it.
    StaleByTimeout = "stale-by-timeout",
    /// The lease is computed from the largest timeout ever granted, and a smaller one shortens nothing.
    LargestTimeout = "largest-timeout",
    /// A waiter does not watch its own node: it accepts the fast hand-off although its node was deleted
    /// before.
    HandOffWithoutOwnWatch = "hand-off-without-own-watch",
    /// A session is closed as soon as the lease of a guard has run out, while the guard's work may still be
    /// stopping.
    SessionClosedAtLoss = "session-closed-at-loss",
    /// A close or shutdown ends the session as soon as its guards are lost, while their work may still be
    /// stopping.
    NoMarginAtClose = "no-margin-at-close",
    /// An operation under a guard continues after the guard is lost.
    OperationOutlivesGuard = "operation-outlives-guard",
    /// A session that one server does not know counts as ended, and its nodes as deleted.
    ExpiredIsGone = "expired-is-gone",
    /// The node of a guard whose lease ran out is deleted immediately instead of after a margin.
    NodeDeletedAtLoss = "node-deleted-at-loss",
    /// A create whose reply was lost is sent again without checking whether it was applied.
    BlindCreateRetry = "blind-create-retry",
    /// A draw that is cancelled while its create is in flight leaves the node in the line.
    CleanupForgottenOnCancel = "cleanup-forgotten-on-cancel",
    /// An owner re-enters a lost hold, even if its session has ended.
    ReentryNotBoundToGeneration = "reentry-not-bound-to-generation",
    /// A waiter whose predecessor was deleted takes its turn without checking the other tickets ahead.
    WakeUpIsGrant = "wake-up-is-grant",
    /// A waiter becomes first when a listing has no ticket ahead of it, whether or not its own node is
    /// listed. The waiter does not watch its own node either.
    GrantWithoutOwnNode = "grant-without-own-node",
    /// A waiter that watches the ticket before its predecessor mistakes the end of that ticket for the
    /// predecessor's.
    OneBeforeIsPredecessor = "one-before-is-predecessor",
    /// A delete that was not acknowledged because the link was lost counts as done.
    FailedDeleteForgotten = "failed-delete-forgotten",
    /// A request that was written and not answered counts as not sent, and is sent again, whatever it does.
    UnknownIsNotSent = "unknown-is-not-sent",
    /// A guard counts as held until the task that keeps the lease has marked it lost, so it is trusted
    /// briefly after a pause.
    CheckWithoutClock = "check-without-clock",
    /// A reader takes its turn even if a writer is ahead of it.
    ReaderIgnoresWriter = "reader-ignores-writer",
    /// A writer that steps down takes a new ticket for its reader, at the end of the line.
    DowngradeTakesNewPlace = "downgrade-takes-new-place",
    /// A waiter for permits uses a cached limit, which may be older than its listing of permits.
    StaleLimit = "stale-limit",
    /// A set of locks that could not be acquired as a whole keeps the locks that it had acquired.
    PartOfSetKept = "part-of-set-kept",
    /// A double barrier admits members that find `ready`, even if an earlier round left it behind.
    ReadyOfEarlierRound = "ready-of-earlier-round",
    /// Work is still polled to completion after its term of leadership was lost.
    WorkGoesOnAfterLoss = "work-goes-on-after-loss",
    /// A candidate whose session ended while it led does not campaign again, and does not report that.
    OutAfterSessionEnd = "out-after-session-end",
    /// A new leader does not wait, whether or not its predecessor resigned.
    TakeoverDelayForgotten = "takeover-delay-forgotten",
    /// A queue item is deleted when it is handed out, before it is processed.
    DeleteBeforeProcessing = "delete-before-processing",
    /// A claim whose reply was lost counts as this client's if no claim is found: the absence of a claim is
    /// mistaken for the absence of a rival.
    NoNodeIsClaim = "no-node-is-claim",
    /// A put whose marker was deleted with its session is sent again: the absence of the marker is mistaken
    /// for proof that the put was not applied.
    PutRetriedOnAbsence = "put-retried-on-absence",
    /// An idle consumer watches only the folder of the items, which reports nothing when a claim ends.
    FreedClaimNotNoticed = "freed-claim-not-noticed",
    /// Queue items are claimed without being counted as handed out.
    HandOutNotCounted = "hand-out-not-counted",
    /// Of a queue's idle consumers, only the first checks for items, even if it is dead.
    OthersDoNotLook = "others-do-not-look",
    /// Of a queue's idle consumers, only the first two check for items, even if both are dead.
    DeadHoldLineUp = "dead-hold-line-up",
    /// A consumer at the head of the line of idle consumers stays there beside a free item that it cannot
    /// decode, and the consumers behind it do not check for items.
    RefusedNotPassedOn = "refused-not-passed-on",
    /// A consumer moves an item that it cannot decode to the dead letters once it has known the item for long
    /// enough, even if another consumer has worked on it in the meantime.
    BuriedBesideOthers = "buried-beside-others",
    /// In ordered mode, a consumer takes the next item if it cannot decode the first one.
    SecondBeforeFirst = "second-before-first",
    /// An item that was claimed for a dropped call stays claimed.
    LateClaimForgotten = "late-claim-forgotten",
    /// An item that was claimed for a call stays claimed for as long as the call is not polled.
    OfferStandsForEver = "offer-stands-for-ever",
    /// An acknowledgement deletes the item but leaves its claim behind.
    ClaimLeftBehind = "claim-left-behind",
    /// The marker of an exact write is set whatever its version. A marker that does not show the write is
    /// mistaken for proof that the write never will be applied.
    MarkerWithoutVersion = "marker-without-version",
    /// A create that got no reply and was not found is assumed never to be applied.
    LostCreateForgotten = "lost-create-forgotten",
    /// A claim counts as the same for as long as a claim exists at its path, whichever client created it.
    ClaimUnchecked = "claim-unchecked",
    /// A claim is handed out while the proof of an earlier claim exists, whose holder can still write.
    EarlierProofStays = "earlier-proof-stays",
    /// The announcement of an instance first deletes any node at its path, even one that another process
    /// announced.
    BlindDelete = "blind-delete",
    /// A kept node counts as last seen, even after its watch has fired or its link was lost.
    KnownWithoutWatch = "known-without-watch",
    /// The end of a registration deletes the node at its path without checking which client created it.
    DeletedUnseen = "deleted-unseen",
    /// After a lost link, a cache lists its folder again but reads only the children that are new.
    NoReadOnReconnect = "no-read-on-reconnect",
    /// A cache with a persistent watch considers itself current once the watch is restored on a new link, and
    /// does not read what changed in between.
    GapTakenForTold = "gap-taken-for-told",
    /// A link may be to any server, even one that lags behind the transactions seen, so configuration values
    /// go back.
    OlderAfterNewer = "older-after-newer",
    /// A configuration value that is replaced without a prior read is replaced whatever its version.
    GuessedVersionNotSent = "guessed-version-not-sent",
    /// The transaction in the header of an event counts as seen although more events of it may follow. If the
    /// link is lost in between, those changes are never seen.
    FoldedZxid = "folded-zxid",
    /// Parts of two states of a view count as equal if they have the same length.
    PartsByLength = "parts-by-length",
    /// A ticket that tasks of a process share is passed on as held after it was lost.
    TurnAfterLoss = "turn-after-loss",
    /// A ticket that tasks of a process share is passed on for as long as a task waits, whatever the limit.
    TurnsWithoutLimit = "turns-without-limit",
    /// A task that is cancelled at the moment at which it gets its turn never gives the turn back.
    TurnForgottenOnCancel = "turn-forgotten-on-cancel",
    /// Ids are counted from a number that forked processes share. A node that is found by an id counts as the
    /// session's own, whichever session created it.
    IdsOfTheProcess = "ids-of-the-process",
    /// The folder of clients' own nodes has the access control list of the first client, and no other place
    /// is tried.
    OwnFolderOfTheFirst = "own-folder-of-the-first",
    /// A service is not shown while one of its instances cannot be read.
    BadNodeSpoilsList = "bad-node-spoils-list",
    /// The fence is the number of the client's session, which all its guards share.
    FenceOfTheSession = "fence-of-the-session",
    /// All waiters of a line watch the first contender instead of their predecessor.
    AllWatchTheFirst = "all-watch-the-first",
    /// A release returns before the node is deleted.
    ReleaseNotAwaited = "release-not-awaited",
    /// An acquire with a timeout waits twice as long.
    TimeoutDoubled = "timeout-doubled",
    /// A reader also waits for the readers ahead of it.
    ReaderWaitsForReaders = "reader-waits-for-readers",
    /// A reader that was a writer has the fence of its reader node instead of the writer's.
    DowngradeLosesFence = "downgrade-loses-fence",
    /// The transaction of a guard does not check that the guard's node exists.
    TransactionUnchecked = "transaction-unchecked",
    /// Work under a leadership that ran out is polled for the longest grace, whatever grace was configured.
    GraceIsMargin = "grace-is-margin",
    /// A waiter notices only after five seconds that its predecessor has left.
    WaiterSleepsOn = "waiter-sleeps-on",
    /// Neither the watch nor a heartbeat notifies a holder that its node was deleted.
    OwnDeletionUnseen = "own-deletion-unseen",
    /// The work of a leader is dropped after five seconds, although its term is not lost.
    TermEndsByItself = "term-ends-by-itself",
    /// An observer of an election is notified of no leader after the first.
    OnlookerStopsLooking = "onlooker-stops-looking",
    /// A set of locks counts as held although one lock was lost while another was being acquired.
    SetUnproven = "set-unproven",
    /// A member leaves a double barrier without waiting for the other members.
    LeavesAtOnce = "leaves-at-once",
    /// A waiter proceeds while the barrier is set.
    BarrierIgnored = "barrier-ignored",
    /// A view removes an instance immediately, whatever its grace is.
    GraceForgotten = "grace-forgotten",
    /// An exact write without a reply is sent again without checking its marker.
    ExactWriteSentAgain = "exact-write-sent-again",
    /// A compare-and-swap sets the node whatever its version.
    CasWithoutVersion = "cas-without-version",
    /// The lost links of a client are counted from zero in each session.
    SuspensionsOfTheSession = "suspensions-of-the-session",
    /// A call has twice its operation timeout.
    DeadlineDoubled = "deadline-doubled",
    /// The close of a client returns before its session has ended.
    CloseNotAwaited = "close-not-awaited",
    /// A shutdown revokes guards without notifying their holders first.
    ShutdownNotAnnounced = "shutdown-not-announced"
        by "docent-tests --test election batteries::embedded::a_leader_is_notified_of_a_shutdown",
    /// A session counts as closed once the close request was written, even if the link is lost before the
    /// reply.
    CloseNotRepeated = "close-not-repeated"
        by "docent-core --lib session::own::machine::tests::end::a_close_without_an_answer_is_sent_again_on_the_next_link",
    /// A link that is lost while the folder of a client's own nodes is created is reported as the absence of
    /// the node that was to be written.
    NoFolderIsNoNode = "no-folder-is-no-node"
        by "docent-tests --test queue folders::embedded::a_purge_deletes_all_items_although_links_are_lost_while_folders_are_created",
    /// A request on which servers close the link is sent again on each new link until its deadline.
    TooLargeForEver = "too-large-for-ever"
        by "docent-tests --test core oversize::embedded::a_write_above_the_servers_limit_fails_after_the_second_lost_link",
    /// A recipe warns about its own node in a line as if another program had created it.
    OwnChildIsForeign = "own-child-is-foreign"
        by "docent-tests --test core logged_once::embedded::a_timed_lease_logs_no_warning_about_its_own_node",
    /// A chroot may contain a comma: `h1/a,h2/a` is parsed as one server with the chroot `/a,h2/a`.
    CommaInChroot = "comma-in-chroot"
        by "docent-core --lib session::connect_string::tests::bad_input_is_named_with_the_rule",
    /// A timed lease that finds its old slot taken does not try the other slots.
    OldSlotAlone = "old-slot-alone"
        by "docent-tests --test locks timed_lease::embedded::a_client_that_loses_the_race_for_its_old_slot_takes_a_free_one",
    /// A leader's term is written into a container node, which the servers delete with the term once there is
    /// no candidate.
    TermInContainer = "term-in-container"
        by "docent-tests --test election takeover::embedded::a_term_is_kept_without_candidates_even_in_a_container_that_predates_the_setting",
    /// An item that is returned with a delay keeps its claim until the delay has passed.
    ClaimKeptForLater = "claim-kept-for-later"
        by "docent-tests --test queue later::embedded::jobs_given_back_for_later_use_up_none_of_the_sessions_nodes",
    /// Queues of Curator's layout with the same lock path share claims, idle consumers and dead letters.
    QueuesShareLockPath = "queues-share-lock-path"
        by "docent-tests --test queue layouts::embedded::two_queues_with_one_lock_path_have_separate_consumers_and_dead_letters",
    /// A put into a simple queue that has run out of sequence numbers reports `NodeExists`.
    CounterEndIsNodeExists = "counter-end-is-node-exists"
        by "docent-tests --test queue simple::a_simple_queue_whose_numbers_are_used_up_returns_an_error",
    /// A local snapshot is used even if it belongs to another node, chroot or namespace.
    SnapshotOfAnyNode = "snapshot-of-any-node"
        by "docent-config --lib file::tests::an_incomplete_snapshot_or_one_of_another_path_is_rejected",
}

/// Plants the defect with this name, whatever [`VARIABLE`] says.
///
/// # Errors
/// [`PlantError::Unknown`] if there is no such defect; [`PlantError::TooLate`] if code with defects has
/// already run.
pub fn plant(name: &str) -> Result<(), PlantError> {
    let defect = name.parse()?;
    if *PLANTED.get_or_init(|| Some(defect)) == Some(defect) {
        Ok(())
    } else {
        Err(PlantError::TooLate(defect))
    }
}

/// Returns the defect of this process.
///
/// # Panics
/// If [`VARIABLE`] holds a name that is not in the catalogue, because a run that plants nothing would prove
/// nothing.
pub fn planted() -> Option<Planted> {
    *PLANTED.get_or_init(|| {
        let name = env::var(VARIABLE).ok().filter(|name| !name.is_empty())?;
        match name.parse() {
            Ok(defect) => Some(defect),
            Err(error) => panic!("{VARIABLE}: {error}"),
        }
    })
}

/// Returns true if this defect is planted.
pub fn is(defect: Planted) -> bool {
    let here = planted() == Some(defect);
    if here {
        REACHED.fetch_add(1, Ordering::Relaxed);
    }
    here
}

/// Returns the number of times that execution reached the defect. 0 means that nothing was tested; a higher
/// number does not mean that anything went wrong.
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
    /// The catalogue has no such defect.
    #[error("defect {0:?} is not in the catalogue")]
    Unknown(String),
    /// Code that may have defects has already run.
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
