//! The pages of the repository: the README and its copies, links, and the code of guides.

mod derived;
mod facade;
mod links;
mod markdown;
mod readme;
mod snippets;
mod summary;
mod task;

pub(crate) use task::{check, write};
