use super::fault::Fault;
use super::kind::Shape;

/// What the README says about a command after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exposure {
    /// All processes have ended when the next holder starts.
    None,
    /// A process may run for a moment beside the next holder.
    Brief,
    /// A process may escape.
    Escape,
}

/// `has_group` is true if the command has a control group.
pub(super) fn exposure(fault: Fault, shape: Shape, has_group: bool) -> Exposure {
    match (fault, shape) {
        // The lock was taken away before docent could know.
        (Fault::Expire | Fault::Break, _) if shape != Shape::Foreign => Exposure::Brief,
        // From the time at which the command continues until docent or its keeper does.
        (Fault::PauseBoth, _) if shape != Shape::Foreign => Exposure::Brief,
        _ if has_group => Exposure::None,
        // A signal, or the loss of the lock, ends the wait for a process that docent may not kill.
        (_, Shape::Foreign) => Exposure::Escape,
        // Only the command itself dies with docent.
        (Fault::KillBoth, shape) if shape != Shape::One => Exposure::Escape,
        // Only the mark leads to a process outside of the group.
        (Fault::Kill | Fault::KillNamed, Shape::Unmarked) => Exposure::Escape,
        _ => Exposure::None,
    }
}
