//! Choice among instances, and outliers that are set aside for a while.

mod choice;
mod error;
mod load;
mod picked;
mod policy;
mod round_robin;

use choice::Candidates;
pub(crate) use choice::{Balance, Candidate};
pub use error::PickError;
pub(crate) use load::Load;
pub use load::OutlierPolicy;
pub use picked::Picked;
pub use policy::PickPolicy;
use round_robin::RoundRobin;
