//! The pages of the repository: the README and its copies, links, and the code of guides.

mod derived;
mod facade;
mod guide;
mod links;
pub(crate) mod markdown;
mod readme;
mod registry;
mod relink;
mod snippets;
mod summary;
mod task;

pub(crate) use links::join;
pub(crate) use relink::REPOSITORY;
pub(crate) use task::{check, for_book, is_generated, write};
