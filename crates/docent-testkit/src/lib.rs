#![doc = include_str!("../README.md")]

#[doc(hidden)]
pub mod internals;
mod options;
mod ports;
mod proxy;
mod raw;
mod real;

pub use ports::Port;
pub use proxy::{Armed, ExpireError};
pub use real::{Missing, RealServer, StartError};
