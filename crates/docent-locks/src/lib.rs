#![doc = include_str!("../README.md")]

mod error;
mod guard;
mod mutex;
mod owner;

pub use error::AcquireError;
pub use guard::MutexGuard;
pub use mutex::Mutex;
pub use owner::Owner;
