use std::fmt;

/// Policy by which [`Service::pick`](crate::Service::pick) chooses among the instances of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PickPolicy {
    /// One after the other, in the order of ids. With a filter, the instances that pass it take turns among
    /// themselves, and picks with other filters do not affect whose turn it is. The turns of the 64 most
    /// recently used sets of instances are remembered. Any other set starts at a random position.
    #[default]
    RoundRobin,
    /// A random instance, all with the same probability.
    Random,
    /// Always the same instance until it leaves or is set aside, then a random other one. With a filter,
    /// until the filter excludes it.
    Sticky,
    /// A random instance, with a probability proportional to its [`weight`](crate::Instance::weight).
    Weighted,
    /// Of two random instances, the one with less work in flight: picks whose [`Picked`](crate::Picked) is
    /// not dropped yet.
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
