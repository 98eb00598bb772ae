#![doc = include_str!("../README.md")]

mod backlog;
mod builder;
mod claims;
mod dead_letters;
mod deliveries;
mod delivery;
mod error;
mod frame;
mod guard;
mod idle;
mod layout;
mod name;
mod ordered;
mod put;
mod queue;
mod simple;
mod store;
mod take;

pub use builder::QueueBuilder;
pub use dead_letters::{DeadLetter, DeadLetters, DeadReason};
pub use deliveries::Deliveries;
pub use delivery::Delivery;
pub use docent_codec::{Codec, CodecError, Json, Raw};
pub use error::{AckError, PeekError, PutError};
pub use layout::QueueLayout;
pub use queue::Queue;
pub use simple::SimpleQueue;
