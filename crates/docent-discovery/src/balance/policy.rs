use std::fmt;

/// Policy by which [`Service::pick`](crate::Service::pick) chooses among the instances of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PickPolicy {
    /// One after the other, in the order of their ids. With a filter the instances that pass it take turns
    /// among themselves: picks with other filters do not change whose turn it is, for the 64 sets of
    /// instances that were picked from last. A further set begins anywhere.
    #[default]
    RoundRobin,
    /// Any, each with the same chance.
    Random,
    /// Always the same, until it leaves or is set aside; then any other. With a filter, until that leaves it
    /// out.
    Sticky,
    /// Any, each with a chance by its [`weight`](crate::Instance::weight).
    Weighted,
    /// Of two instances chosen at random, the one with less in flight: picks whose [`Picked`](crate::Picked)
    /// is not dropped yet.
    PowerOfTwo,
}

impl fmt::Display for PickPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundRobin => "round robin",
            Self::Random => "random",
            Self::Sticky => "sticky",
            Self::Weighted => "weighted",
            Self::PowerOfTwo => "power of two",
        })
    }
}
