use crate::exit::Failure;
use docent::config::{PublishError, SubscribeError};

impl From<PublishError> for Failure {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Core(error) => error.into(),
            PublishError::Refused(_) | PublishError::Unreadable(_) => Self::BadData(error.to_string()),
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<SubscribeError> for Failure {
    fn from(error: SubscribeError) -> Self {
        match error {
            SubscribeError::Core(error) => error.into(),
            SubscribeError::Refused { .. } => Self::BadData(error.to_string()),
            error => Self::Other(error.to_string()),
        }
    }
}

/// Nothing is published at `key`.
pub(super) fn missing(key: &str) -> Failure {
    Failure::Other(format!("nothing is published at {key}"))
}

/// Refuses `value` where it `must_be_json` and is not.
pub(super) fn check_json(value: &[u8], must_be_json: bool) -> Result<(), Failure> {
    if !must_be_json {
        return Ok(());
    }
    let read = serde_json::from_slice::<serde::de::IgnoredAny>(value);
    read.map(drop).map_err(|error| Failure::BadData(format!("the value is not JSON: {error}")))
}
