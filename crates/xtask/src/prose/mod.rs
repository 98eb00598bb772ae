//! Meter of the prose in Rust files: how doc sentences begin, and how wide comment lines are.

mod check;
mod paragraphs;
mod report;
mod sentences;
mod width;

pub(crate) use check::run;
