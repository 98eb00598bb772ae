/// Errors of picking an instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PickError {
    /// No instance of the service is known that is enabled and passes the filter.
    #[error("service {service:?} has no instance that can be picked")]
    NoInstance {
        /// The service's name.
        service: String,
    },
}
