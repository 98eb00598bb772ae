//! Engine of the kit, for Docent's own suites. No promise is made for anything in here.

pub use crate::each_poll::poll_times;
pub use crate::net::{Net, NetListener, NetStream};
pub use crate::options::ServerOptions;
pub use crate::proxy::{Direction, Fate, Flow, FrameKind, KeptAlive, On, Proxy, Rule, Sessions, Traced};
pub use crate::raw::{RawClient, RawError, Reply};
pub use crate::real::{Java, RealEnsemble};
