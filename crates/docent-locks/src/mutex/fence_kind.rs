use docent_core::recipe::Hold;
use docent_core::{Fence, TurnFence};

/// Kind of fence that the guards of a [`Mutex`](crate::Mutex) have: [`Fence`], or [`TurnFence`] where tasks
/// of one process [share tickets](crate::MutexBuilder::share_in_process).
///
/// The trait is sealed.
pub trait FenceKind: sealed::Sealed + Copy + Send + Sync + 'static {}

impl FenceKind for Fence {}
impl FenceKind for TurnFence {}

pub(super) mod sealed {
    use super::{Fence, Hold, TurnFence};

    pub trait Sealed: Sized {
        /// The fence of this kind; `None` when the hold has none.
        fn of(hold: &Hold) -> Option<Self>;
    }

    impl Sealed for Fence {
        fn of(hold: &Hold) -> Option<Self> {
            (!hold.is_turn()).then(|| hold.fence())
        }
    }

    impl Sealed for TurnFence {
        fn of(hold: &Hold) -> Option<Self> {
            Some(hold.turn_fence())
        }
    }
}
