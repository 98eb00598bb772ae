//! The handles of a server and its followers, and their builders.

mod builder;
mod faults;
mod follower;
mod follower_builder;
mod kept;
mod link;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod server;

pub use builder::Builder;
pub use follower::Follower;
pub use follower_builder::FollowerBuilder;
pub use link::Link;
pub use server::Server;
