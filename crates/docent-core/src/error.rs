use crate::guard::LostReason;
use docent_proto::Code;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Kind of an error, as far as a caller would act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument breaks a rule; nothing was sent.
    InvalidInput,
    /// The request is larger than the client sends ([`max_request`](crate::ClientBuilder::max_request)), or
    /// the reply is larger than the client accepts ([`max_reply`](crate::ClientBuilder::max_reply)): nothing
    /// was written. Or the servers closed the link twice on a request of this size, as they do on requests
    /// above their `jute.maxbuffer`; [`may_have_applied`](crate::Error::may_have_applied) says whether the
    /// outcome of the write is certain.
    TooLarge,
    /// No server could be reached, or none answered, before the deadline. It surely was not applied.
    Timeout,
    /// The link was lost, or the deadline passed, after the request was sent: it may have been applied.
    OutcomeUnknown,
    /// The node does not exist.
    NoNode,
    /// The node exists already.
    NodeExists,
    /// The version given is not the node's version.
    BadVersion,
    /// The node has children.
    NotEmpty,
    /// The parent is ephemeral and cannot have children.
    NoChildrenForEphemerals,
    /// Permission is missing.
    NoAuth,
    /// The servers refused the client's credentials, or want some. It tries again only now and then.
    AuthFailed,
    /// The access control list is empty or not valid.
    InvalidAcl,
    /// A quota of the path is used up.
    QuotaExceeded,
    /// The server has the operation switched off.
    Unsupported,
    /// The session that the operation was bound to has ended.
    SessionChanged,
    /// The guard is lost.
    Lost(LostReason),
    /// The session's timeout is shorter than four ticks of the server: no lease can be trusted.
    ShortLease,
    /// The parent's counter of sequential children is near its end.
    SequenceExhausted,
    /// Contenders of another kind stand at the path, such as those of a mutex at a read/write lock's, or of
    /// another layout of an election: they would not wait for each other.
    MixedKinds,
    /// This client keeps a node at the path already.
    AlreadyRegistered,
    /// Too many requests are waiting; this one was not sent.
    Overloaded,
    /// The session would own so many ephemeral nodes that the servers might not survive its end; nothing was
    /// sent.
    TooManyEphemerals,
    /// The servers were restored from an older copy, and the client stopped.
    EnsembleRolledBack,
    /// The client was closed.
    Closed,
    /// Another code of the server.
    Server(i32),
}

impl ErrorKind {
    /// True when the same call may succeed later without anything being changed by the caller.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Timeout | Self::Overloaded | Self::SessionChanged => true,
            Self::InvalidInput
            | Self::TooLarge
            // Repeating a call whose effect is unknown could double it.
            | Self::OutcomeUnknown
            | Self::NoNode
            | Self::NodeExists
            | Self::BadVersion
            | Self::NotEmpty
            | Self::NoChildrenForEphemerals
            | Self::NoAuth
            | Self::AuthFailed
            | Self::InvalidAcl
            | Self::QuotaExceeded
            | Self::Unsupported
            | Self::Lost(_)
            | Self::ShortLease
            | Self::SequenceExhausted
            // It would be waited for in vain: a person has to settle on one of the kinds.
            | Self::MixedKinds
            | Self::AlreadyRegistered
            | Self::TooManyEphemerals
            | Self::EnsembleRolledBack
            | Self::Closed
            | Self::Server(_) => false,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid input",
            Self::TooLarge => "request or reply is too large",
            Self::Timeout => "no server answered in time",
            Self::OutcomeUnknown => "sent, but no reply came: it may have been applied",
            Self::NoNode => "no such node",
            Self::NodeExists => "node exists already",
            Self::BadVersion => "version does not match",
            Self::NotEmpty => "node has children",
            Self::NoChildrenForEphemerals => "ephemeral nodes cannot have children",
            Self::NoAuth => "permission denied",
            Self::AuthFailed => "the servers refused the credentials",
            Self::InvalidAcl => "access control list is not valid",
            Self::QuotaExceeded => "quota exceeded",
            Self::Unsupported => "the server does not support this",
            Self::SessionChanged => "the session has ended",
            Self::Lost(_) => "the guard is lost",
            Self::ShortLease => "session timeout is too short for a lease",
            Self::SequenceExhausted => "the sequence numbers of this path are nearly used up",
            Self::MixedKinds => "the path is used by another kind",
            Self::AlreadyRegistered => "this client keeps a node there already",
            Self::Overloaded => "too many requests are waiting",
            Self::TooManyEphemerals => "the session owns too many ephemeral nodes",
            Self::EnsembleRolledBack => "the servers were restored from an older copy",
            Self::Closed => "the client is closed",
            Self::Server(_) => "the server answered with an error",
        }
    }
}

/// The text that errors of this kind have, as `no such node`.
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match self {
            Self::Lost(reason) => write!(f, ": {reason}"),
            Self::Server(code) => write!(f, ": code {code}"),
            _ => Ok(()),
        }
    }
}

/// An error of Docent's core. Small and cheap to clone.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    path: Option<String>,
    may_have_applied: bool,
    /// True when it is about a node of the client's own, and not about what the caller asked for.
    is_of_own_node: bool,
    detail: Option<String>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self(Arc::new(Inner {
            kind,
            operation,
            path: None,
            may_have_applied: kind == ErrorKind::OutcomeUnknown,
            is_of_own_node: false,
            detail: None,
            source: None,
        }))
    }

    /// An error about an argument of a recipe: `detail` names the value and the rule.
    pub fn invalid_input(operation: &'static str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, operation).because(detail)
    }

    /// An error of a recipe whose client was closed, about `path`.
    pub fn closed(operation: &'static str, path: &str) -> Self {
        Self::new(ErrorKind::Closed, operation).at(path)
    }

    /// A session would own ephemeral nodes with `bytes` of paths, of which it may have `limit`.
    pub(crate) fn too_many_ephemerals(operation: &'static str, bytes: usize, limit: usize) -> Self {
        let detail = format!("{bytes} bytes of paths in one session, the limit is {limit}");
        Self::new(ErrorKind::TooManyEphemerals, operation).because(detail)
    }

    /// An error of a recipe that cannot take another number at a path: `detail` names the number.
    pub fn sequence_exhausted(operation: &'static str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::SequenceExhausted, operation).because(detail)
    }

    /// Error of a request, or its reply, of `size` bytes. Also of a recipe that finds out before it sends:
    /// what is too large has this one shape.
    pub fn too_large(operation: &'static str, size: usize, limit: usize) -> Self {
        Self::new(ErrorKind::TooLarge, operation).because(match size > limit {
            true => format!("{size} bytes, the limit is {limit}"),
            // Above no limit of this client's: servers close the link on what is above theirs.
            false => format!(
                "the servers closed the link twice on a request of {size} bytes, which this client's limit of \
                 {limit} (max_request) allows: raise jute.maxbuffer on every server, or write less"
            ),
        })
    }

    pub(crate) fn from_code(code: Code, operation: &'static str) -> Self {
        let kind = match code {
            Code::NO_NODE => ErrorKind::NoNode,
            Code::NODE_EXISTS => ErrorKind::NodeExists,
            Code::BAD_VERSION => ErrorKind::BadVersion,
            Code::NOT_EMPTY => ErrorKind::NotEmpty,
            Code::NO_CHILDREN_FOR_EPHEMERALS => ErrorKind::NoChildrenForEphemerals,
            Code::NO_AUTH => ErrorKind::NoAuth,
            Code::AUTH_FAILED | Code::SESSION_CLOSED_REQUIRE_SASL_AUTH => ErrorKind::AuthFailed,
            Code::INVALID_ACL => ErrorKind::InvalidAcl,
            Code::QUOTA_EXCEEDED => ErrorKind::QuotaExceeded,
            Code::UNIMPLEMENTED | Code::RECONFIG_DISABLED => ErrorKind::Unsupported,
            Code::BAD_ARGUMENTS => ErrorKind::InvalidInput,
            Code::SESSION_EXPIRED => ErrorKind::SessionChanged,
            other => ErrorKind::Server(other.0),
        };
        let error = Self::new(kind, operation);
        match kind {
            ErrorKind::Server(_) => error.because(code.to_string()),
            ErrorKind::NoAuth => match needed(operation) {
                Some(needed) => error.because(format!("needs {needed}")),
                None => error,
            },
            _ => error,
        }
    }

    fn edit(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// The same error, about `path`.
    #[must_use]
    pub fn at(self, path: &str) -> Self {
        let path = path.to_owned();
        self.edit(|inner| inner.path = Some(path))
    }

    pub(crate) fn because(self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        self.edit(|inner| inner.detail = Some(detail))
    }

    /// The same error; where permission is missing it says that `permission` is needed.
    pub(crate) fn needing(self, permission: &str) -> Self {
        match self.kind() {
            ErrorKind::NoAuth => self.because(format!("needs {permission}")),
            _ => self,
        }
    }

    pub(crate) fn caused_by(self, source: Arc<dyn StdError + Send + Sync>) -> Self {
        self.edit(|inner| inner.source = Some(source))
    }

    /// The same error, by which `operation` failed before it began: the client may not create a node of its
    /// own that it needs.
    pub(crate) fn of_own_node(self, operation: &'static str) -> Self {
        self.edit(|inner| (inner.operation, inner.is_of_own_node) = (operation, true))
    }

    /// True when it says nothing about what the caller asked for.
    pub(crate) fn is_of_own_node(&self) -> bool {
        self.0.is_of_own_node
    }

    pub(crate) fn maybe_applied(self, may_have_applied: bool) -> Self {
        self.edit(|inner| inner.may_have_applied = may_have_applied)
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The path it is about.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// The operation that failed, such as `create`.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// True when the same call may succeed later. See [`ErrorKind::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }

    /// True when a guard was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Lost(_))
    }

    /// True when a server did not want to do it now.
    pub(crate) fn is_throttled(&self) -> bool {
        self.0.kind == ErrorKind::Server(Code::THROTTLED.0)
    }

    /// True when a server answered, and refuses.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::NoNode
                | ErrorKind::NodeExists
                | ErrorKind::BadVersion
                | ErrorKind::NotEmpty
                | ErrorKind::NoChildrenForEphemerals
                | ErrorKind::NoAuth
                | ErrorKind::InvalidAcl
                | ErrorKind::QuotaExceeded
                | ErrorKind::Unsupported
                | ErrorKind::Server(_)
        )
    }

    /// True when the operation may have taken effect although it failed.
    pub fn may_have_applied(&self) -> bool {
        self.0.may_have_applied
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.operation)?;
        if let Some(path) = &self.0.path {
            write!(f, " {path:?}")?;
        }
        match (&self.0.detail, self.0.kind) {
            (Some(detail), ErrorKind::InvalidInput | ErrorKind::Server(_)) => write!(f, ": {detail}"),
            (Some(detail), kind) => write!(f, ": {}: {detail}", kind.text()),
            (None, kind) => write!(f, ": {kind}"),
        }?;
        // A closed client says so; whether the effect is there is the other thing a caller needs.
        if self.0.may_have_applied && self.0.kind != ErrorKind::OutcomeUnknown {
            f.write_str(" (it may have been applied)")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("path", &self.0.path)
            .field("may_have_applied", &self.0.may_have_applied)
            .field("detail", &self.0.detail)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| source.as_ref() as _)
    }
}

/// The permission that an operation needs, as far as that is one.
fn needed(operation: &str) -> Option<&'static str> {
    Some(match operation {
        "create" => "CREATE on the parent",
        "delete" | "ensure_absent" => "DELETE on the parent",
        "get" | "children" | "watch" | "participants" => "READ",
        "set" => "WRITE",
        "acl" => "READ or ADMIN",
        "set_acl" => "ADMIN",
        "release" => "DELETE",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_and_says_what_where_and_why() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        let error = Error::from_code(Code::NO_NODE, "get").at("/a");
        assert_eq!(error.to_string(), "get \"/a\": no such node");
        let error = Error::invalid_input("acquire", "permits 0 must be at least 1");
        assert_eq!(error.to_string(), "acquire: permits 0 must be at least 1");
    }

    #[test]
    fn only_an_unknown_outcome_may_have_been_applied() {
        assert!(Error::new(ErrorKind::OutcomeUnknown, "set").may_have_applied());
        assert!(!Error::new(ErrorKind::Timeout, "set").may_have_applied());
        assert!(!ErrorKind::OutcomeUnknown.is_retryable());
    }
}
