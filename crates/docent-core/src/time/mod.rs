//! Clocks and timers: time that keeps running while the machine sleeps, deadlines of any length, and pauses
//! between attempts.

mod clock;
mod humane;
mod retry;

pub use clock::{BootClock, Clock, Timestamp, TokioClock, after};
pub(crate) use clock::{DeadlineTimer, deadline, sleep_until};
pub(crate) use humane::{DURATION_RULE, HumaneDuration, duration_ms, seconds, time_ms};
pub use humane::{parse_duration, since_1970_ms};
pub(crate) use retry::Backoff;
pub use retry::RetryPolicy;
