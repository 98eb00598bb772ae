use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter::successors;

/// Outcome of an attempt, from the point of view of the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The instance did its work, even if the answer is a refusal.
    Succeeded,
    /// The instance failed, and may have handled the request. Such a request is sent again only if that is
    /// safe.
    Failed,
    /// The request was not sent, because no connection was opened. It is sent again to another instance.
    Unsent,
}

impl Outcome {
    /// Returns the outcome for an HTTP status: 502, 503 and 504 are [`Failed`](Self::Failed), all others
    /// [`Succeeded`](Self::Succeeded).
    pub fn of_status(status: u16) -> Self {
        match status {
            502..=504 => Self::Failed,
            _ => Self::Succeeded,
        }
    }

    /// Returns the outcome for an error: [`Unsent`](Self::Unsent) if the error, or one of its sources, is a
    /// refused connection, otherwise [`Failed`](Self::Failed).
    ///
    /// Clients that connect on their own know more: use `Unsent` if `is_connect()` of reqwest or hyper-util
    /// is true.
    pub fn of_error(error: &(dyn Error + 'static)) -> Self {
        let is_refused = |error: &(dyn Error + 'static)| {
            error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        };
        // Other kinds, such as an unreachable host, may also occur after a request was sent.
        let is_unsent = successors(Some(error), |&error| error.source()).any(is_refused);
        if is_unsent { Self::Unsent } else { Self::Failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gateway_and_unavailable_statuses_count_as_failures() {
        for (status, outcome) in [
            (200, Outcome::Succeeded),
            (404, Outcome::Succeeded),
            (429, Outcome::Succeeded),
            (500, Outcome::Succeeded),
            (502, Outcome::Failed),
            (503, Outcome::Failed),
            (504, Outcome::Failed),
        ] {
            assert_eq!(Outcome::of_status(status), outcome, "{status}");
        }
    }

    #[test]
    fn a_refused_connection_is_found_among_the_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer")]
        struct Outer(#[source] io::Error);

        assert_eq!(Outcome::of_error(&io::Error::from(ErrorKind::ConnectionRefused)), Outcome::Unsent);
        assert_eq!(Outcome::of_error(&Outer(ErrorKind::ConnectionRefused.into())), Outcome::Unsent);
        assert_eq!(Outcome::of_error(&Outer(ErrorKind::ConnectionReset.into())), Outcome::Failed);
        assert_eq!(Outcome::of_error(&io::Error::other("planted")), Outcome::Failed);
    }
}
