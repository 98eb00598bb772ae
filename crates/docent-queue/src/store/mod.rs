//! A queue without regard to what its items are: its items at the servers, and the items that this process
//! has claimed.

mod aside;
mod backlog;
mod claim_size;
mod claimed_item;
mod desk;
mod folder;
mod hand_out_size;
mod items;
mod last_listing;
mod offer;
mod own_claims;
mod prospect;
mod room;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod store;

pub(crate) use aside::Aside;
pub(crate) use backlog::Backlog;
pub(crate) use claim_size::{ClaimSize, MOST};
pub(crate) use claimed_item::ClaimedItem;
pub(crate) use desk::{Demand, Desk, ItemEnd, Leftover, Taker};
pub(crate) use folder::{ensure_folder, ensure_known_folder};
use hand_out_size::HandOutSize;
pub(crate) use items::{Items, Listing, Place, children_ever};
pub(crate) use last_listing::LastListing;
pub(crate) use offer::Offer;
pub(crate) use own_claims::{OwnClaim, OwnClaims};
pub(crate) use prospect::Prospect;
use room::Room;
pub(crate) use store::{Limits, Store};
