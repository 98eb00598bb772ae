//! Wake-ups of tasks.

mod poll_on_wake;
mod wake_flag;

pub(crate) use poll_on_wake::PollOnWake;
pub(crate) use wake_flag::WakeFlag;
