//! The server's clock, and durations in the units of the wire format.

mod clock;
mod wire;

pub(crate) use clock::Clock;
pub(crate) use wire::{millis, timeouts_ms};
