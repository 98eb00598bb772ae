use super::Revision;
use crate::CodecError;
use docent_core::recipe::HookPanic;
use std::fmt;

/// A value that was rejected, with the reason.
///
/// The printed text repeats nothing of the value, which may hold secrets, unless the configuration [allows
/// it](crate::ConfigBuilder::show_rejection_detail). [`detail`](Self::detail) may repeat parts of the value.
#[derive(Clone)]
pub struct Rejection {
    reason: RejectionReason,
    revision: Option<Revision>,
    summary: String,
    detail: Option<String>,
}

/// Step that rejected a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectionReason {
    /// The value cannot be decoded from the data, or cannot be encoded.
    Codec,
    /// The validation hook rejected the value.
    Validation,
    /// The codec or the validation hook panicked.
    Panicked,
    /// The servers do not permit reading the value of a [`ConfigTree`](crate::ConfigTree)'s key.
    Unreadable,
}

impl Rejection {
    pub(crate) fn codec(error: &CodecError) -> Self {
        let (summary, detail) = (error.summary().to_owned(), error.detail().map(str::to_owned));
        Self { reason: RejectionReason::Codec, revision: None, summary, detail }
    }

    pub(crate) fn validation(detail: String) -> Self {
        let summary = "rejected by validation".to_owned();
        Self { reason: RejectionReason::Validation, revision: None, summary, detail: Some(detail) }
    }

    pub(crate) fn panicked(panic: &HookPanic) -> Self {
        let (summary, detail) = (panic.to_string(), panic.message().map(str::to_owned));
        Self { reason: RejectionReason::Panicked, revision: None, summary, detail }
    }

    pub(crate) fn unreadable(error: &docent_core::Error) -> Self {
        let summary = format!("cannot be read: {error}");
        Self { reason: RejectionReason::Unreadable, revision: None, summary, detail: None }
    }

    pub(crate) fn of(self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self }
    }

    /// Returns the same rejection, with `subject` before its printed text.
    pub(crate) fn about(self, subject: &str) -> Self {
        Self { summary: format!("{subject} {}", self.summary), ..self }
    }

    /// Returns the same rejection, which prints its detail.
    pub(crate) fn shown(self) -> Self {
        match &self.detail {
            Some(detail) => Self { summary: format!("{}: {detail}", self.summary), ..self },
            None => self,
        }
    }

    /// Returns the printed text without the revision.
    pub(crate) fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the step that rejected the value.
    pub fn reason(&self) -> RejectionReason {
        self.reason
    }

    /// Returns the rejected revision, or `None` for a value that was not published.
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// Returns the message of the codec, of the validation hook, or of a panic. It may repeat parts of the
    /// value: do not log it if values hold secrets.
    pub fn detail(&self) -> &str {
        self.detail.as_deref().unwrap_or(&self.summary)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.revision {
            Some(revision) => write!(f, "the value of version {}: {}", revision.version, self.summary),
            None => write!(f, "the value: {}", self.summary),
        }
    }
}

impl fmt::Debug for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rejection")
            .field("reason", &self.reason)
            .field("revision", &self.revision)
            .field("summary", &self.summary)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Rejection {}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Codec => "codec",
            Self::Validation => "validation",
            Self::Panicked => "panic",
            Self::Unreadable => "unreadable",
        })
    }
}
