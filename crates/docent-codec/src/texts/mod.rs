//! Typed values from texts under keys such as `server.port` and `hosts[0]`.

mod deserializer;
mod error;
pub(crate) mod key;
mod list;
mod scalars;
#[cfg(test)]
mod tests;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod texts;

pub use error::TextError;
pub use key::is_same_key;
pub use texts::Texts;
