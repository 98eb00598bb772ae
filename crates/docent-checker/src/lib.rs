#![doc = include_str!("../README.md")]

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
