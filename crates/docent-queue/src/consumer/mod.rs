//! How a consumer gets an item: the task that claims the lowest free items for all calls of the process, the
//! lock of the ordered mode, and wakeups while there are no items.

mod changes;
mod claimer;
mod endings;
mod free_items;
mod idle;
pub(crate) mod ordered;

pub(crate) use claimer::{LATE, Request, is_passing, leave, list_ahead, start};
pub use endings::LETTER;
pub(crate) use endings::bury;
pub use idle::IDLE;
