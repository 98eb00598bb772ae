//! The server as a program; what `docent-server` does is all here.

mod console;
mod limits;
mod lossy_writer;
mod options;
mod run;
mod signals;

pub use lossy_writer::LossyWriter;
pub use run::run;
