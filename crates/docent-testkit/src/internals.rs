//! Implementation of the test kit, for Docent's own test suites. Nothing in this module is stable.

pub use crate::each_poll::poll_times;
pub use crate::net::{Net, NetListener, NetStream};
pub use crate::options::ServerOptions;
pub use crate::proxy::{Direction, Fate, Flow, FrameKind, KeptAlive, On, Proxy, Rule, Sessions, Traced};
pub use crate::raw::{RawClient, RawError, Reply};
pub use crate::real::{Java, RealEnsemble};
