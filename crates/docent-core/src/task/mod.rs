//! Wake-ups of tasks, streams that they share, and calls of users' code by them.

mod hook;
mod poll_on_wake;
mod sync_stream;
mod together;
mod wake_flag;

pub use hook::{HookPanic, call_hook};
pub(crate) use poll_on_wake::PollOnWake;
pub use sync_stream::SyncStream;
pub(crate) use together::Together;
pub(crate) use wake_flag::WakeFlag;
