//! The README and the quick start, followed word for word: their commands are run and their files are written
//! in an empty folder, as a new user would do it.

mod debian;
mod groups;
mod machine;
mod reader;
mod source;
mod steps;
mod task;

pub(crate) use task::run;
