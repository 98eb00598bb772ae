//! An instance that is kept announced.

mod announced;
mod handle;
mod persistent;
mod status;
mod update;

pub(crate) use announced::Announced;
pub use handle::Registration;
pub use status::RegistrationStatus;
