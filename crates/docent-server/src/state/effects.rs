use super::events::Events;
use super::refusal::Refusal;

/// Effects of a step of the state machine, which the caller must apply.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Events to send before the reply, in order.
    pub(crate) events: Events,
    /// Events to send after the reply.
    pub(crate) later: Events,
    /// Sessions that ended.
    pub(crate) ended: Vec<i64>,
    /// The limit that the request exceeded.
    pub(crate) refusal: Option<Refusal>,
    /// Number of nodes and names that were visited one by one.
    pub(super) visits: usize,
}

impl Effects {
    /// Returns the units of work that the step took besides the size of its request. A unit is about one
    /// visit of a node.
    pub(crate) fn work(&self) -> usize {
        self.visits + self.events.as_slice().len() + self.later.as_slice().len()
    }
}
