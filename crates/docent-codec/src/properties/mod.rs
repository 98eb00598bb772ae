//! Values as the text of a Java properties file.

mod codec;
mod flatten;
mod parse;
mod write;

pub use codec::Properties;
