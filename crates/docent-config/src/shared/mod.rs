//! A shared value and a shared number, in the layouts of Curator.

mod shared_count;
mod shared_value;
mod with_initial;

pub use shared_count::SharedCount;
pub use shared_value::SharedValue;
