//! Clocks and timers: time that keeps running while the machine sleeps, deadlines of any length, and pauses
//! between attempts.

mod clock;
mod deadline;
mod humane;
mod retry;
mod seconds;
mod serialize;

pub use clock::{BootClock, Clock, Timestamp, TokioClock};
pub(crate) use clock::{DeadlineTimer, sleep_until};
pub use deadline::after;
pub(crate) use deadline::deadline;
pub use humane::parse_duration;
pub(crate) use humane::{DURATION_RULE, HumaneDuration};
pub(crate) use retry::Backoff;
pub use retry::RetryPolicy;
pub(crate) use seconds::seconds;
pub use serialize::since_1970_ms;
pub(crate) use serialize::{duration_ms, time_ms};
