//! Wake-ups of tasks, and streams that they share.

mod poll_on_wake;
mod sync_stream;
mod wake_flag;

pub(crate) use poll_on_wake::PollOnWake;
pub use sync_stream::SyncStream;
pub(crate) use wake_flag::WakeFlag;
