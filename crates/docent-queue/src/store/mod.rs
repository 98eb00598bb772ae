//! A queue of encoded items: its items at the servers, and the items that this process has claimed.

mod backlog;
mod claim_size;
mod claimed_item;
mod dispatcher;
mod folder;
mod foreign_items;
mod hand_out_size;
mod items;
mod last_listing;
mod offer;
mod own_claims;
mod prospect;
mod room;
mod skipped_items;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod store;

pub(crate) use backlog::Backlog;
pub(crate) use claim_size::{ClaimSize, MOST};
pub(crate) use claimed_item::ClaimedItem;
pub(crate) use dispatcher::{Demand, Dispatcher, ItemEnd, Leftover, PendingTake};
pub(crate) use folder::{ensure_folder, ensure_known_folder};
pub(crate) use foreign_items::ForeignItems;
use hand_out_size::HandOutSize;
pub(crate) use items::{ItemPlace, Items, Listing, children_ever};
pub(crate) use last_listing::LastListing;
pub(crate) use offer::Offer;
pub(crate) use own_claims::{OwnClaim, OwnClaims};
pub(crate) use prospect::Prospect;
use room::Room;
pub(crate) use skipped_items::SkippedItems;
pub(crate) use store::{Limits, Store};
