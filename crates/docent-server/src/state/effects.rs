use super::event::Event;

/// Effects of a step of the state machine, for its caller to carry out.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Events to send, in this order and before the reply.
    pub(crate) events: Vec<Event>,
    /// Events to send after the reply.
    pub(crate) later: Vec<Event>,
    /// Sessions that ended.
    pub(crate) ended: Vec<i64>,
}
