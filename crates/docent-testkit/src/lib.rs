#![doc = include_str!("../README.md")]

mod ports;
mod proxy;
mod raw;
mod real;

pub use proxy::{
    Armed, Direction, ExpireError, Fate, Flow, FrameKind, On, Proxy, Rule, Sessions, Traced, round_trips,
    watch_events,
};
pub use raw::{RawClient, RawError, Reply};
pub use real::{Missing, RealOptions, RealServer, StartError};
