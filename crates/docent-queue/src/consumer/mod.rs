//! Ways of a consumer to an item: claims of the lowest items that are free, the lock of the ordered mode, and
//! wakeups while there is nothing.

mod claimed_item;
pub(crate) mod claims;
pub(crate) mod ordered;
mod wakeups;

pub(crate) use claimed_item::ClaimedItem;
pub(crate) use wakeups::Wakeups;
