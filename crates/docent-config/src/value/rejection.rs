use super::Revision;
use crate::CodecError;
use docent_core::recipe::HookPanic;
use std::fmt;

/// A value that was not taken, and why.
///
/// Its printed text repeats nothing of the value, which may hold secrets, unless the configuration [was told
/// to](crate::ConfigBuilder::show_rejection_detail); [`detail`](Self::detail) may.
#[derive(Clone)]
pub struct Rejection {
    reason: RejectionReason,
    revision: Option<Revision>,
    summary: String,
    detail: Option<String>,
}

/// Step that refused a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RejectionReason {
    /// It cannot be made from the data, or the data from it.
    Codec,
    /// The validation hook refused it.
    Validation,
    /// The codec or the validation hook panicked.
    Panicked,
    /// The servers do not let it be read.
    Unreadable,
}

impl Rejection {
    pub(crate) fn codec(error: &CodecError) -> Self {
        let (summary, detail) = (error.summary().to_owned(), error.detail().map(str::to_owned));
        Self { reason: RejectionReason::Codec, revision: None, summary, detail }
    }

    pub(crate) fn validation(detail: String) -> Self {
        let summary = "validation refused it".to_owned();
        Self { reason: RejectionReason::Validation, revision: None, summary, detail: Some(detail) }
    }

    pub(crate) fn panicked(panic: &HookPanic) -> Self {
        let (summary, detail) = (panic.to_string(), panic.message().map(str::to_owned));
        Self { reason: RejectionReason::Panicked, revision: None, summary, detail }
    }

    pub(crate) fn unreadable(error: &docent_core::Error) -> Self {
        let summary = format!("it cannot be read: {error}");
        Self { reason: RejectionReason::Unreadable, revision: None, summary, detail: None }
    }

    pub(crate) fn of(self, revision: Revision) -> Self {
        Self { revision: Some(revision), ..self }
    }

    /// The same, which prints its detail.
    pub(crate) fn shown(self) -> Self {
        match &self.detail {
            Some(detail) => Self { summary: format!("{}: {detail}", self.summary), ..self },
            None => self,
        }
    }

    /// Step that refused it.
    pub fn reason(&self) -> RejectionReason {
        self.reason
    }

    /// The revision that was refused; `None` for a value that was not published.
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// The fault, in the words of the codec or the validation hook, or of its panic. It may repeat parts of
    /// the value: do not log it where values hold secrets.
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
