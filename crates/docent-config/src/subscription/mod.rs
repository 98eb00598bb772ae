//! Subscriptions to one value, and the feed that they share.

mod fallback;
mod newest_filter;
mod shared_feed;
mod state_wait;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod subscription;
mod value_state;

pub(crate) use fallback::Fallback;
pub(crate) use newest_filter::{Judgement, NewestFilter};
pub(crate) use shared_feed::SharedFeed;
pub(crate) use state_wait::{StateWait, or_error};
pub use subscription::{Change, Subscription};
