//! Image of the state as bytes: tree, sessions and numbers, without watches, links and journal.

mod fields;
mod read;
mod write;

#[cfg(test)]
mod tests;
