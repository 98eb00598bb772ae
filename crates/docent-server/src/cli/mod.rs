//! The server as a program; what `docent-server` does is all here.

mod options;
mod run;
mod signals;

pub use run::run;
