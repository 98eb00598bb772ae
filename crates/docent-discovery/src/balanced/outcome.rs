use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter::successors;

/// Outcome of an attempt, as far as the instance is concerned that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The instance did its work, also where the answer is a refusal.
    Succeeded,
    /// The instance failed, and may have done what was asked: such a request is sent again only if it is
    /// safe.
    Failed,
    /// The request never left: no connection was made. It is sent again to another instance.
    Unsent,
}

impl Outcome {
    /// Outcome by an HTTP status: 502, 503 and 504 are [`Failed`](Self::Failed), all others
    /// [`Succeeded`](Self::Succeeded).
    pub fn of_status(status: u16) -> Self {
        match status {
            502..=504 => Self::Failed,
            _ => Self::Succeeded,
        }
    }

    /// Outcome by an error: [`Unsent`](Self::Unsent) when it, or one of its sources, is a connection that was
    /// refused, else [`Failed`](Self::Failed).
    ///
    /// Clients that connect by themselves know more: take `Unsent` where `is_connect()` of reqwest or
    /// hyper-util is true.
    pub fn of_error(error: &(dyn Error + 'static)) -> Self {
        let is_refused = |error: &(dyn Error + 'static)| {
            error
                .downcast_ref::<io::Error>()
                .is_some_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        };
        // Other kinds, such as an unreachable host, may come once a request is on its way, too.
        let is_unsent = successors(Some(error), |&error| error.source()).any(is_refused);
        if is_unsent { Self::Unsent } else { Self::Failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gateways_and_those_who_are_unavailable_fail_by_status() {
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
