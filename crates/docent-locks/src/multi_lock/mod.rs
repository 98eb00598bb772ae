//! Several locks as one.

mod any_lock;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod multi_lock;

pub use any_lock::AnyLock;
pub use multi_lock::{MultiGuard, MultiLock};
