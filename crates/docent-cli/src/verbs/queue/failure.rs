use crate::exit::Failure;
use docent::queue::{AckError, PeekError, PutError};

impl From<PutError> for Failure {
    fn from(error: PutError) -> Self {
        match error {
            PutError::Core(error) => error.into(),
            PutError::Encode(_) | PutError::Unreadable(_) => Self::BadData(error.to_string()),
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<AckError> for Failure {
    fn from(error: AckError) -> Self {
        match error {
            AckError::Core(error) => error.into(),
            AckError::Put(error) => error.into(),
            error => Self::Lost(error.to_string()),
        }
    }
}

impl From<PeekError> for Failure {
    fn from(error: PeekError) -> Self {
        match error {
            PeekError::Core(error) => error.into(),
            error => Self::BadData(error.to_string()),
        }
    }
}
