#![doc = include_str!("../README.md")]

mod ports;
mod raw;
pub mod real;

pub use raw::{RawClient, RawError, Reply};
pub use real::{Missing, RealOptions, RealServer, StartError};
