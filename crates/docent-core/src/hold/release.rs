use crate::cleanup::{DeleteOutcome, Deletion};
use crate::error::{Error, ErrorKind};
use crate::guard::LostReason;
use tokio::time::Instant;

/// Waits until the node of a hold is gone.
pub(crate) async fn gone(
    operation: &'static str,
    path: &str,
    deadline: Instant,
    was_held: Result<(), LostReason>,
    deletion: Option<Deletion>,
) -> Result<(), Error> {
    let outcome = match deletion {
        Some(deletion) => deletion.by(deadline).await,
        None => DeleteOutcome::Gone,
    };
    let error = |kind| Error::new(kind, operation).at(path);
    match (was_held, outcome) {
        (Err(reason), _) => Err(error(ErrorKind::Lost(reason))),
        (Ok(()), DeleteOutcome::Gone) => Ok(()),
        (Ok(()), DeleteOutcome::Refused(code)) => Err(Error::from_code(code, operation).at(path)),
        (Ok(()), DeleteOutcome::Closed) => Err(error(ErrorKind::Closed)),
        (Ok(()), DeleteOutcome::Timeout) => {
            Err(error(ErrorKind::Timeout).because("it goes on in the background"))
        }
    }
}
