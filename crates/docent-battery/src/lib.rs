#![doc = include_str!("../README.md")]

mod backend;
pub mod battery;
pub mod chromium;
pub mod curator;
pub mod packages;
pub mod peer;
mod round_trips;
mod test_server;

pub use backend::Backend;
pub use docent_testkit::internals::{
    Direction, Fate, Flow, FrameKind, Java, KeptAlive, Net, NetListener, NetStream, On, Proxy, RawClient,
    RawError, RealEnsemble, Reply, Rule, ServerOptions, Sessions, Traced,
};
pub use docent_testkit::{Armed, Dialect, ExpireError, MemoryNet, Missing, Port, RealServer, StartError};
pub use round_trips::{round_trips, watch_events};
pub use test_server::TestServer;
