//! The same scripts on the embedded server and on a real ZooKeeper, with everything that they answer
//! compared.
//!
//! A script is a list of steps of up to four sessions: requests of every kind, good and bad, links that are
//! lost, sessions that end. A run writes down all that comes back, in a form that is the same on every server
//! that does the same: times are left out, transactions are numbered in the order of the script's own,
//! sessions by their place in the script. So two servers differ where two records do.

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
