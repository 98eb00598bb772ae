//! A queue of encoded items: its items at the servers, and the items that this process has claimed.

mod backlog;
mod dispatcher;
mod items;
mod skipped_items;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod store;

pub(crate) use backlog::{Backlog, LastListing};
pub(crate) use dispatcher::{Demand, Dispatcher, ItemEnd, Leftover, Offer, PendingTake};
pub(crate) use items::{ItemPlace, Items, Listing, ensure_folder, ensure_known_folder};
pub(crate) use skipped_items::SkippedItems;
pub(crate) use store::{ClaimedItem, Limits, MOST, OwnClaim, OwnClaims, Prospect, Store, children_ever};
