//! What happened in a run, and whether it was right: clients record events, the server's journal is the truth they are held
//! against, and each invariant is one file under `check`.

mod event;
mod recorder;

pub use event::{
    Attempt, AttemptId, CallId, ClientId, Ending, Event, FaultKind, Grant, Handle, LinkState, Role, Use, What,
};
pub use recorder::{Recorder, Scribe};
