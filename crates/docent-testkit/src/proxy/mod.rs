//! A proxy that decodes frames, so that it can break links at a chosen request.

mod expire;
mod handle;
mod keep_alive;
mod lane;
mod link;
mod rule;
mod state;
mod tap;
mod trace;

pub use expire::{ExpireError, Sessions};
pub use handle::Proxy;
pub use keep_alive::KeptAlive;
pub use lane::Flow;
pub use rule::{On, Rule};
pub use trace::{Direction, Fate, FrameKind, Traced};
