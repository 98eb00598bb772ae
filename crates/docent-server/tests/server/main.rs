//! Tests of the server with a client that sends frames and checks the replies.

mod basics;
mod dialects;
mod faults;
mod followers;
mod hostile;
mod journal;
mod keep;
mod lag;
mod late;
mod limits;
mod log;
mod numbered;
#[cfg(feature = "cli")]
mod process;
#[cfg(feature = "cli")]
mod program;
mod read_only;
mod replaced;
mod sessions;
#[cfg(feature = "cli")]
mod stderr;
mod support;
mod virtual_time;
mod words;
