//! Scripts that are generated from a seed.

mod generator;
mod requests;
mod scenes;
mod values;

pub use generator::generate;
