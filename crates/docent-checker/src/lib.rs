#![doc = include_str!("../README.md")]

mod analysis;
mod attempt_trace;
mod attempts;
mod check;
mod contender;
mod coverage;
mod double_barriers;
mod elections;
mod event;
mod faults;
mod fingerprint;
mod hand_outs;
#[cfg(test)]
mod history;
mod journal;
mod journal_replay;
mod line;
mod listings;
mod publications;
mod queue_item;
mod queues;
mod recorder;
mod report;
mod resource;
mod run;
mod rw_lines;
mod spans;
mod timeline;
mod violation;
mod watch_model;
mod watched_link;
mod watched_tree;
mod watcher;

pub use check::check;
pub use coverage::Coverage;
pub use event::{
    Announcing, Attempt, AttemptId, CallId, Candidacy, ClientId, Delivering, Ending, Event, EventKind,
    FaultKind, Following, Grant, Handle, LinkState, Listed, Meeting, Observing, Outcome, Publishing, Putting,
    Role, Settlement, Taking, Turn, Use, Viewing, Way,
};
pub use fingerprint::Fingerprint;
pub use journal::{Change, ChangeKind, EndCause};
pub use recorder::{ClientRecorder, Recorder};
pub use report::report;
pub use resource::FencedResource;
pub use run::{
    DeadReason, Decodable, EndState, Facts, Limit, Noted, QueueRules, Queued, QueuedAs, Run, Tolerances,
    Written,
};
pub use violation::{Invariant, Violation};
pub use watcher::{Received, WatcherLink};
