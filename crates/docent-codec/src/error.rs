use docent_core::ErrorKind;
use std::fmt;

/// Error of a [`Codec`](crate::Codec) that cannot encode a value or decode data.
#[derive(Clone)]
pub struct CodecError {
    summary: String,
    detail: Option<String>,
}

impl CodecError {
    /// Creates an error. The `summary` is printed and logged, so it must not repeat any part of the value,
    /// which may be secret.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), detail: None }
    }

    /// Adds a text for people that may repeat parts of the value. The text is never logged.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// Returns the text that is printed. It does not repeat any part of the value.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the text for people, which may repeat parts of the value. Do not log this text if values are
    /// secret.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)
    }
}

// Does not print the detail, which may repeat parts of the value.
impl fmt::Debug for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodecError").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl std::error::Error for CodecError {}

impl From<CodecError> for docent_core::Error {
    fn from(error: CodecError) -> Self {
        Self::of_recipe(ErrorKind::InvalidData, "codec", error)
    }
}
