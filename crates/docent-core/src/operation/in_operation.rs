use crate::error::Error;

/// Names the method that a caller called in the error that the method returns.
///
/// A method of a recipe sends requests such as `create` and `children`, whose errors name these requests. The
/// caller knows only the method: `put "/queues/jobs": permission denied`.
///
/// # Examples
/// ```no_run
/// # use docent_core::recipe::InOperation;
/// # use docent_core::{Client, Error};
/// # async fn example(client: &Client) -> Result<(), Error> {
/// let names = client.children("/workers").await.in_operation("workers")?.names;
/// # let _ = names;
/// # Ok(()) }
/// ```
pub trait InOperation {
    /// Returns the same value. If it is an error of the core crate, or contains one, that error names
    /// `operation`.
    #[must_use]
    fn in_operation(self, operation: &'static str) -> Self;
}

impl InOperation for Error {
    fn in_operation(self, operation: &'static str) -> Self {
        self.of_operation(operation)
    }
}

impl<T, E: InOperation> InOperation for Result<T, E> {
    fn in_operation(self, operation: &'static str) -> Self {
        self.map_err(|error| error.in_operation(operation))
    }
}
