//! Subscriptions to one value, and the feed that they share.

mod newest_filter;
mod shared_feed;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod subscription;

pub(crate) use newest_filter::{Judgement, NewestFilter};
pub(crate) use shared_feed::SharedFeed;
pub(crate) use subscription::Fallback;
pub use subscription::{Change, Subscription};
