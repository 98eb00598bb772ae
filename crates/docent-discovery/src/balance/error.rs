use docent_core::ErrorKind;

/// Error of picking an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickError {
    /// No instance of the service is known that is enabled and passes the filter.
    #[error("pick: service {service:?} has no available instance")]
    NoInstance {
        /// Name of the service.
        service: String,
    },
}

impl PickError {
    /// Returns true, because instances may become available at any time.
    pub fn is_retryable(&self) -> bool {
        true
    }

    /// Returns false, because nothing is sent.
    pub fn may_have_applied(&self) -> bool {
        false
    }

    /// Returns `None`, because the error is about a service rather than a node.
    pub fn path(&self) -> Option<&str> {
        None
    }
}

impl From<PickError> for docent_core::Error {
    fn from(error: PickError) -> Self {
        Self::of_recipe(ErrorKind::Unavailable, "pick", error)
    }
}
