#![doc = include_str!("../README.md")]

mod backend;
pub mod battery;
mod options;
mod ports;
mod proxy;
mod raw;
mod real;
mod test_server;

pub use backend::Backend;
pub use options::ServerOptions;
pub use ports::Port;
pub use proxy::{
    Armed, Direction, ExpireError, Fate, Flow, FrameKind, KeptAlive, On, Proxy, Rule, Sessions, Traced,
    round_trips, watch_events,
};
pub use raw::{RawClient, RawError, Reply};
pub use real::{Missing, RealEnsemble, RealServer, StartError};
pub use test_server::TestServer;
