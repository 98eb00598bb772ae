use super::line::Line;
use crate::error::{Error, ErrorKind};
use std::time::Duration;

impl Line {
    /// Waits out an error that passes by itself, such as an outage of the servers: returns after a pause,
    /// before the caller tries the operation that failed with `error` again. For callers that wait without a
    /// limit of their own, however long others hold them up.
    ///
    /// # Errors
    /// `error`, when waiting does not help.
    ///
    /// # Cancel safety
    /// This method is cancel safe.
    pub async fn wait_out(&self, error: Error) -> Result<(), Error> {
        if !may_pass(&error) {
            return Err(error);
        }
        tracing::warn!(path = self.path(), %error, "it did not go on in the line, trying again");
        // Different for each, so that they do not come all at once after an outage.
        self.pause(Duration::from_millis(500 + fastrand::u64(..1000))).await;
        Ok(())
    }
}

/// True for an error that goes away by itself.
fn may_pass(error: &Error) -> bool {
    match error.kind() {
        // The client is bound to a session that has ended: that does not pass.
        ErrorKind::SessionChanged => false,
        // Parents were deleted as fast as they were made: that passes.
        ErrorKind::NoNode => true,
        _ => error.is_retryable(),
    }
}
