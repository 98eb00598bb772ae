//! Figures of the code's structure: how long files and functions are, which files import each other in a
//! circle, which types have their methods in many files, and how many files an acquire crosses.

mod circles;
mod figures;
mod imports;
mod lengths;
mod one_acquire;
mod source;
mod spread;
mod task;

pub(crate) use one_acquire::check;
pub(crate) use task::run;
