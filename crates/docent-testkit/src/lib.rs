#![doc = include_str!("../README.md")]

mod each_poll;
mod each_request;
mod eventually;
mod fault_proxy;
mod in_line;
#[doc(hidden)]
pub mod internals;
mod memory_net;
mod net;
mod options;
mod ports;
mod proxy;
mod raw;
mod real;

pub use docent_server::{Armed, Dialect, Operation};
pub use each_poll::{abandon_at, drop_at_each_poll};
pub use each_request::{FailedRun, FaultRun, LinkFault, break_each_request};
pub use eventually::{NotMet, eventually};
pub use fault_proxy::FaultProxy;
pub use in_line::in_line;
pub use memory_net::{MemoryListener, MemoryNet};
pub use ports::Port;
pub use proxy::ExpireError;
pub use real::{Missing, RealServer, StartError};
