//! Runs the same scripts on the embedded server and on a real ZooKeeper, and compares everything that the
//! servers send.
//!
//! A script is a list of steps of up to four sessions: valid and invalid requests of every kind, lost links,
//! and sessions that end. A run records everything that a server sends, in a form that is the same for every
//! server with the same behaviour. Times are omitted. Transactions are numbered in the order of the script's
//! own transactions, and sessions by their position in the script. So two servers behave differently if their
//! records differ.

mod campaign;
mod compare;
mod coverage;
mod fixed;
mod generate;
mod run;
mod script;
mod servers;
mod shrink;

pub use campaign::{Campaign, Failure};
pub use compare::{ALLOWED, Allowed, Difference, compare};
pub use coverage::Coverage;
pub use fixed::{Fixed, fixed_scripts};
pub use generate::generate;
pub use run::{Record, run};
pub use script::{Action, Operation, Step, parse, print};
pub use servers::{Servers, embedded, real};
pub use shrink::shrink;
