use serde::{Deserialize, Serialize};
use std::fmt;

/// Item of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) producer: String,
    pub(crate) number: u32,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.producer, self.number)
    }
}
