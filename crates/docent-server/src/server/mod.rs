//! The handles: a server, its followers, and their builders.

mod builder;
mod faults;
mod follower;
mod follower_builder;
mod kept;
mod link;
#[expect(clippy::module_inception, reason = "the folder is about it")]
mod server;

pub use builder::Builder;
pub use follower::Follower;
pub use follower_builder::FollowerBuilder;
pub use link::Link;
pub use server::Server;
