#![doc = include_str!("../README.md")]

mod consumer;
mod dead_letters;
mod delivery;
mod error;
mod layout;
mod queue;
mod simple;
mod store;

pub use dead_letters::{DeadLetter, DeadLetters, DeadReason};
pub use delivery::Delivery;
pub use docent_codec::{Codec, CodecError, Json, Raw};
pub use error::{AckError, PeekError, PutError};
pub use layout::QueueLayout;
pub use queue::{Deliveries, Queue, QueueBuilder};
pub use simple::SimpleQueue;
