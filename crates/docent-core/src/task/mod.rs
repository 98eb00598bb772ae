//! Wake-ups of tasks, shared streams, and calls of user code.

mod coalescer;
mod hook;
mod sync_stream;
mod wake_flag;

pub(crate) use coalescer::Coalescer;
pub use hook::{HookPanic, call_hook};
pub use sync_stream::SyncStream;
pub(crate) use wake_flag::{PollOnWake, WakeFlag};
