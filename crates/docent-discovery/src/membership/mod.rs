//! Group membership, as Curator's `GroupMember`.

mod builder;
mod change;
mod group;
mod member;
mod members;
mod peer;

pub use builder::MembershipBuilder;
pub use change::{MemberChange, MemberChanges};
pub use group::Membership;
pub use member::{Member, Presence};
pub use members::Members;
pub use peer::Peer;
