//! Single operations of a client: attempts until there is an answer, outcomes that are found out, exact
//! writes, and parents.

mod attempts;
mod commit;
mod create;
mod ensure_absent;
mod ephemeral;
pub(crate) mod exact;
pub(crate) mod resolve;
mod transaction;

pub use attempts::in_time;
pub(crate) use attempts::{Attempts, Make, Outcomes, unexpected};
pub(crate) use create::{PARENT_ROUNDS, create, create_parents_by, create_parents_in, refused_parent};
pub(crate) use ensure_absent::ensure_absent;
pub(crate) use transaction::{Committed, wire};
pub use transaction::{Transaction, TransactionResult};
