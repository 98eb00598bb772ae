//! Checker of histories: clients record events, the server's journal is the truth they are held against, and
//! each invariant is one file under `check`.
//!
//! - A [`Recorder`] takes down [`Event`]s; guards are used on a [`FencedResource`].
//! - A [`Run`] is those events, the server's journal as [`Change`]s, and [`Facts`] about the world.
//! - [`check`] returns every [`Violation`], [`report`] shows one with the events that led to it, [`Coverage`]
//!   tells how much a run showed, and [`Run::fingerprint`] whether two runs were the same.
//!
//! # What a workload has to do
//! It records each attempt, each answer and each use at the moment it has it; awaits `lost()` of every guard
//! in a task of its own; asks `is_held` right before each use; and lists no line by itself. Nodes of
//! neighbours that are no clients of the run count as contenders, and nothing is asked of them.
//!
//! # What is not modelled
//! An acquire of several things (a set of locks, several permits) is one attempt for each of them, written
//! down as [together](What::Together). The turn for which a semaphore's waiters stand in line is one of them.
//! Replies are not recorded, so a lease is judged by when the server ended the session and not by its own
//! arithmetic.

mod attempts;
mod check;
mod contender;
mod coverage;
mod elections;
mod event;
mod faults;
mod fingerprint;
mod journal;
mod line;
mod listings;
mod members;
mod publications;
mod queues;
mod recorder;
mod report;
mod resource;
mod run;
mod scene;
mod sides;
#[cfg(test)]
mod sketch;
mod spans;
mod timeline;
mod truth;
mod violation;

pub use check::check;
pub use coverage::Coverage;
pub use event::{
    Announcing, Attempt, AttemptId, CallId, Candidacy, ClientId, Delivering, Ending, Event, FaultKind,
    Following, Grant, Handle, LinkState, Listed, Meeting, Onlooking, Outcome, Publishing, Putting, Role,
    Taking, Use, Viewing, Way, What,
};
pub use fingerprint::Fingerprint;
pub use journal::{Change, ChangeKind, EndCause};
pub use recorder::{Recorder, Scribe};
pub use report::report;
pub use resource::FencedResource;
pub use run::{EndState, Facts, Limit, Noted, Queued, QueuedAs, Run, Tolerances, Written};
pub use violation::{Invariant, Violation};
