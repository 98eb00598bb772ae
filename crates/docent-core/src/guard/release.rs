use super::LostReason;
use crate::cleanup::{Leaving, Left};
use crate::error::{Error, ErrorKind};
use tokio::time::Instant;

/// Waits until the node of a hold is gone.
pub(crate) async fn gone(
    operation: &'static str,
    path: &str,
    deadline: Instant,
    was_held: Result<(), LostReason>,
    leaving: Option<Leaving>,
) -> Result<(), Error> {
    let left = match leaving {
        Some(leaving) => leaving.by(deadline).await,
        None => Left::Gone,
    };
    let error = |kind| Error::new(kind, operation).at(path);
    match (was_held, left) {
        (Err(reason), _) => Err(error(ErrorKind::Lost(reason))),
        (Ok(()), Left::Gone) => Ok(()),
        (Ok(()), Left::Refused(code)) => Err(Error::from_code(code, operation).at(path)),
        (Ok(()), Left::Closed) => Err(error(ErrorKind::Closed)),
        (Ok(()), Left::Timeout) => Err(error(ErrorKind::Timeout).because("it goes on in the background")),
    }
}
