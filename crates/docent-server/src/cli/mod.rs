//! The server as a program. The `docent-server` binary only calls [`run`].

mod console;
mod limits;
mod lossy_writer;
mod options;
mod run;
mod sasl_users;
mod signals;

pub use lossy_writer::LossyWriter;
pub use run::run;
