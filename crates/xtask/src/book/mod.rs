//! The book: the pages of `docs`, rendered by mdBook, with every link checked.

mod html;
mod render;
mod tools;

pub(crate) use html::check_docs;
pub(crate) use render::run;
