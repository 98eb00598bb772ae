//! Figures of the code's structure: how long files and functions are, which files import each other in a
//! circle, and which types have their methods in many files.

mod circles;
mod figures;
mod imports;
mod lengths;
mod source;
mod spread;
mod task;

pub(crate) use task::run;
