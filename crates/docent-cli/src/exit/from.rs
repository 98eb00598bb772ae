//! Conversion of errors of the library and of the output into failures.

use super::failure::Failure;
use docent::config::{PublishError, SubscribeError};
use docent::locks::AcquireError;
use docent::queue::{AckError, PeekError, PutError};
use docent::{Error, ErrorKind};
use std::io;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = with_sources(&error);
        match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::ShortLease | ErrorKind::ReadOnly => Self::usage(text),
            ErrorKind::TooLarge | ErrorKind::InvalidData => Self::bad_data(text),
            ErrorKind::BadVersion | ErrorKind::NodeExists | ErrorKind::AlreadyRegistered => {
                Self::conflict(text)
            }
            ErrorKind::NotAcquired => Self::not_acquired(text),
            ErrorKind::NoAuth | ErrorKind::AuthFailed => Self::no_permission(text),
            ErrorKind::Lost(_) => Self::lost(text),
            ErrorKind::Timeout | ErrorKind::OutcomeUnknown | ErrorKind::SessionChanged => {
                Self::unreachable(text)
            }
            _ => Self::other(text),
        }
    }
}

impl From<AcquireError> for Failure {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Core(error) => error.into(),
            AcquireError::Busy(missed) | AcquireError::TimedOut(missed) if !missed.servers_reachable() => {
                Self::unreachable(missed.to_string())
            }
            AcquireError::Busy(_) | AcquireError::TimedOut(_) => Self::not_acquired(error.to_string()),
            AcquireError::Lost(_) => Self::lost(error.to_string()),
            error => Self::other(error.to_string()),
        }
    }
}

/// Errors of writing the output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::broken_pipe(),
            _ => Self::other(format!("cannot write the output: {error}")),
        }
    }
}

/// Converts errors of recipes into failures. An error of the servers keeps its kind; the other variants get
/// the kinds that are named.
macro_rules! from_recipe_errors {
    ($($error:ident: $($pattern:pat => $kind:ident),+;)+) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                match error {
                    $error::Core(error) => error.into(),
                    $($pattern => Self::$kind(error.to_string()),)+
                }
            }
        }
    )+};
}

from_recipe_errors! {
    PublishError: PublishError::Conflict => conflict,
        PublishError::Refused(_) | PublishError::Unreadable(_) => bad_data, _ => other;
    SubscribeError: SubscribeError::Refused { .. } => bad_data, _ => other;
    PutError: PutError::Encode(_) | PutError::Unreadable(_) => bad_data, _ => other;
    PeekError: _ => bad_data;
}

impl From<AckError> for Failure {
    fn from(error: AckError) -> Self {
        match error {
            AckError::Core(error) => error.into(),
            AckError::Put(error) => error.into(),
            error => Self::lost(error.to_string()),
        }
    }
}

/// Returns the text of `error`, extended by the sources that it does not name itself.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(reason) = source {
        let reason_text = reason.to_string();
        if !text.contains(&reason_text) {
            text = format!("{text}: {reason_text}");
        }
        source = reason.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_errors_have_their_own_exit_codes() {
        let code = |error: Error| Failure::from(error).code();
        assert_eq!(code(Error::invalid_input("lock", "a rule")), 2);
        assert_eq!(code(Error::closed("lock", "/a")), 1);
    }
}
