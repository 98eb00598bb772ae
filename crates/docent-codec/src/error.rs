use std::fmt;

/// Refusal of a value or of data by a [`Codec`](crate::Codec).
#[derive(Clone)]
pub struct CodecError {
    summary: String,
    detail: Option<String>,
}

impl CodecError {
    /// `summary` is printed and logged: it must repeat nothing of the value, which may hold secrets.
    pub fn new(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), detail: None }
    }

    /// Adds a text for people that may repeat parts of the value. It is never logged.
    #[must_use]
    pub fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// The text that is printed. It repeats nothing of the value.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// The text for people, which may repeat parts of the value: do not log it where values are secret.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary)
    }
}

// The detail may repeat parts of the value.
impl fmt::Debug for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodecError").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl std::error::Error for CodecError {}
