//! Several locks as one.

mod any_lock;
mod guard;
#[expect(clippy::module_inception, reason = "the folder is named after its main module")]
mod multi_lock;

pub use any_lock::AnyLock;
pub use guard::MultiGuard;
pub use multi_lock::MultiLock;
