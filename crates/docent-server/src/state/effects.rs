use super::events::Events;
use super::refusal::Refusal;

/// Effects of a step of the state machine, for its caller to carry out.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Events to send, in this order and before the reply.
    pub(crate) events: Events,
    /// Events to send after the reply.
    pub(crate) later: Events,
    /// Sessions that ended.
    pub(crate) ended: Vec<i64>,
    /// Limit that the request met.
    pub(crate) refusal: Option<Refusal>,
    /// Nodes and names that were looked at one by one.
    pub(super) looks: usize,
}

impl Effects {
    /// Units of work that the step took besides what its request says, of about the time of a look at a node.
    pub(crate) fn work(&self) -> usize {
        self.looks + self.events.as_slice().len() + self.later.as_slice().len()
    }
}
