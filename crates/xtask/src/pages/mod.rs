//! The pages of the repository: the README and its copies, links, the code of guides, and names of types.

mod derived;
mod facade;
mod links;
mod markdown;
mod names;
mod readme;
mod snippets;
mod task;

pub(crate) use task::{check, write};
