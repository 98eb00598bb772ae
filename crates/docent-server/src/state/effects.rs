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
}
