/// Errors of picking an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickError {
    /// No instance of the service is known that is enabled and passes the filter.
    #[error("pick: service {service:?} has no instance that can be picked")]
    NoInstance {
        /// The service's name.
        service: String,
    },
}

impl PickError {
    /// True: instances come and go.
    pub fn is_retryable(&self) -> bool {
        true
    }

    /// Always false: nothing is sent.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// `None`: it is about a service, whatever nodes that has.
    pub fn path(&self) -> Option<&str> {
        None
    }
}
