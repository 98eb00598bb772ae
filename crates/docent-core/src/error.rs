use crate::guard::LostReason;
use docent_proto::Code;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Kind of an error, at the level of detail that a caller would act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument breaks a rule, or the call would wait for its own owner; nothing was sent.
    InvalidInput,
    /// The request is larger than the client sends ([`max_request`](crate::ClientBuilder::max_request)), or
    /// the reply is larger than the client accepts ([`max_reply`](crate::ClientBuilder::max_reply)); nothing
    /// was written. Or the servers closed the link twice on a request of this size, as they do for requests
    /// above their `jute.maxbuffer`: [`may_have_applied`](crate::Error::may_have_applied) then returns
    /// whether the write may have been applied.
    TooLarge,
    /// No server was reachable, or none answered, before the deadline. The operation was not applied, except
    /// perhaps one that can be repeated without harm, such as
    /// [`ensure_absent`](crate::Client::ensure_absent).
    Timeout,
    /// The link was lost, or the deadline passed, after the request was sent. The operation may have been
    /// applied.
    OutcomeUnknown,
    /// The node does not exist.
    NoNode,
    /// The node already exists.
    NodeExists,
    /// The given version is not the node's version.
    BadVersion,
    /// The node has children.
    NotEmpty,
    /// The parent is ephemeral and cannot have children.
    NoChildrenForEphemerals,
    /// A permission is missing.
    NoAuth,
    /// The servers refused the client's credentials, or require some. The client retries only about every 30
    /// seconds.
    AuthFailed,
    /// The access control list is empty or not valid.
    InvalidAcl,
    /// A quota of the path is exhausted.
    QuotaExceeded,
    /// The server does not support the operation, or has it disabled.
    Unsupported,
    /// The client was built with [`read_only`](crate::ClientBuilder::read_only), and the call writes or needs
    /// a quorum. A write fails before it is sent; a server without a quorum refuses a `sync`. Nothing was
    /// changed.
    ReadOnly,
    /// The session that the operation was bound to has ended.
    SessionChanged,
    /// The guard was lost.
    Lost(LostReason),
    /// The session's timeout is shorter than four server ticks, so no lease can be trusted.
    ShortLease,
    /// Another client holds the lock or waits for it, or a barrier did not open within the timeout.
    NotAcquired,
    /// What the call needs is missing for now: room in a queue, an instance of a service, a valid value of a
    /// configuration, a free address.
    Unavailable,
    /// Data cannot be decoded, or a value cannot be encoded.
    InvalidData,
    /// The parent's counter for sequential children is almost exhausted.
    SequenceExhausted,
    /// Contenders of another kind use the path, such as those of a mutex at a read/write lock's path, or of
    /// another layout of an election. They would not wait for each other.
    MixedKinds,
    /// This client already keeps a node at the path.
    AlreadyRegistered,
    /// Too many requests are waiting; this request was not sent.
    Overloaded,
    /// The session would own so many ephemeral nodes that the servers might not survive its end; nothing was
    /// sent.
    TooManyEphemerals,
    /// The servers were restored from an older snapshot, and the client has stopped.
    EnsembleRolledBack,
    /// The client was closed, or the embedded server was stopped.
    Closed,
    /// Another code of the server.
    Server(i32),
}

impl ErrorKind {
    /// Returns true if the same call may succeed later without any change by the caller.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Timeout
            | Self::Overloaded
            | Self::SessionChanged
            | Self::NotAcquired
            // Another process makes room, registers or publishes.
            | Self::Unavailable => true,
            Self::InvalidInput
            | Self::TooLarge
            // Repeating a call whose effect is unknown could double the effect.
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
            | Self::ReadOnly
            | Self::Lost(_)
            | Self::ShortLease
            | Self::InvalidData
            | Self::SequenceExhausted
            // Waiting would not help, because a person has to settle on one of the kinds.
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
            Self::OutcomeUnknown => "sent, but no reply arrived; the change may have been applied",
            Self::NoNode => "no such node",
            Self::NodeExists => "node already exists",
            Self::BadVersion => "version does not match",
            Self::NotEmpty => "node has children",
            Self::NoChildrenForEphemerals => "ephemeral nodes cannot have children",
            Self::NoAuth => "permission denied",
            Self::AuthFailed => "the servers refused the credentials",
            Self::InvalidAcl => "access control list is not valid",
            Self::QuotaExceeded => "quota exceeded",
            Self::Unsupported => "the server does not support the operation",
            Self::ReadOnly => "the client only reads, and this needs more",
            Self::SessionChanged => "the session has ended",
            Self::Lost(_) => "the guard is lost",
            Self::ShortLease => "session timeout is too short for a lease",
            Self::NotAcquired => "not acquired",
            Self::Unavailable => "not available now",
            Self::InvalidData => "invalid data",
            Self::SequenceExhausted => "the sequence numbers of this path are nearly used up",
            Self::MixedKinds => "contenders of another kind use the path",
            Self::AlreadyRegistered => "this client already keeps a node at the path",
            Self::Overloaded => "too many requests are waiting",
            Self::TooManyEphemerals => "the session owns too many ephemeral nodes",
            Self::EnsembleRolledBack => "the ensemble was restored from an older snapshot",
            Self::Closed => "the client is closed",
            Self::Server(_) => "the server answered with an error",
        }
    }
}

/// Prints the text that errors of this kind have, for example `no such node`.
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

/// An error of any operation of Docent. Small and cheap to clone.
///
/// Operations of the client return this type. A recipe's method returns an error type of its own, such as
/// `AcquireError`, with variants that a caller acts on. Each of them converts into `Error`, so `?` works in a
/// function that returns `Result<_, Error>`.
///
/// The converted error keeps the text, the [path](Self::path), the [source](StdError::source), and the
/// answers of [`is_retryable`](Self::is_retryable) and [`may_have_applied`](Self::may_have_applied).
/// [`kind`](Self::kind) classifies it. [`downcast_ref`](Self::downcast_ref) returns the recipe's error. A
/// variant `Core` becomes the `Error` that it contains.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    path: Option<String>,
    may_have_applied: bool,
    /// True if the error concerns one of the client's own nodes, and not what the caller requested.
    is_of_own_node: bool,
    detail: Option<String>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    /// The recipe's error that was converted into this one.
    recipe: Option<Arc<dyn StdError + Send + Sync>>,
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
            recipe: None,
        }))
    }

    /// Converts an error type of a recipe, for its `From<RecipeError> for Error`. `operation` is the method
    /// that failed. The result has the text and the source of `error`, and the answers of `kind`. Add the
    /// path with [`at`](Self::at). If `error` answers `may_have_applied` differently, add its answer with
    /// [`maybe_applied`](Self::maybe_applied).
    pub fn of_recipe<E>(kind: ErrorKind, operation: &'static str, error: E) -> Self
    where
        E: StdError + Send + Sync + 'static,
    {
        Self::new(kind, operation).edit(|inner| inner.recipe = Some(Arc::new(error)))
    }

    /// Creates an error about an argument of a recipe. `detail` names the value and the rule.
    pub fn invalid_input(operation: &'static str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, operation).because(detail)
    }

    /// Creates the error of a recipe at `path` whose client was closed.
    pub fn closed(operation: &'static str, path: &str) -> Self {
        Self::new(ErrorKind::Closed, operation).at(path)
    }

    /// Creates the error of a session that would own ephemeral nodes with `bytes` of paths, above its
    /// `limit`.
    pub(crate) fn too_many_ephemerals(operation: &'static str, bytes: usize, limit: usize) -> Self {
        let detail = format!("{bytes} bytes of paths in one session, the limit is {limit}");
        Self::new(ErrorKind::TooManyEphemerals, operation).because(detail)
    }

    /// Creates the error of a recipe that has no sequence numbers left at a path. `detail` names the number.
    pub fn sequence_exhausted(operation: &'static str, detail: impl Into<String>) -> Self {
        Self::new(ErrorKind::SequenceExhausted, operation).because(detail)
    }

    /// Creates the error of a request, or of its reply, of `size` bytes. Recipes that check the size before
    /// they send also use this constructor, so that all such errors look the same.
    pub fn too_large(operation: &'static str, size: usize, limit: usize) -> Self {
        Self::new(ErrorKind::TooLarge, operation).because(match size > limit {
            true => format!("{size} bytes, the limit is {limit}"),
            // Within this client's limit: servers close the link on requests above their own limit.
            false => format!(
                "the servers closed the connection twice on a request of {size} bytes, which this client's limit of \
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
            Code::NOT_READ_ONLY => ErrorKind::ReadOnly,
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

    /// Returns the same error, about `path`.
    #[must_use]
    pub fn at(self, path: &str) -> Self {
        let path = path.to_owned();
        self.edit(|inner| inner.path = Some(path))
    }

    /// Returns the same error, about `path` if it is known.
    #[must_use]
    pub fn at_path(self, path: Option<&str>) -> Self {
        match path {
            Some(path) => self.at(path),
            None => self,
        }
    }

    pub(crate) fn because(self, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        self.edit(|inner| inner.detail = Some(detail))
    }

    /// Returns the same error. If a permission is missing, the error names `permission` as required.
    pub(crate) fn needing(self, permission: &str) -> Self {
        match self.kind() {
            ErrorKind::NoAuth => self.because(format!("needs {permission}")),
            _ => self,
        }
    }

    pub(crate) fn caused_by(self, source: Arc<dyn StdError + Send + Sync>) -> Self {
        self.edit(|inner| inner.source = Some(source))
    }

    /// Returns the same error, of the method `operation`.
    pub(crate) fn of_operation(self, operation: &'static str) -> Self {
        match self.0.operation == operation {
            true => self,
            false => self.edit(|inner| inner.operation = operation),
        }
    }

    /// Returns the same error for `operation`, which failed before it began because the client could not
    /// create one of its own nodes.
    pub(crate) fn of_own_node(self, operation: &'static str) -> Self {
        self.edit(|inner| (inner.operation, inner.is_of_own_node) = (operation, true))
    }

    /// Returns true if the error says nothing about what the caller requested.
    pub(crate) fn is_of_own_node(&self) -> bool {
        self.0.is_of_own_node
    }

    /// Returns the same error, with this answer of [`may_have_applied`](Self::may_have_applied).
    #[must_use]
    pub fn maybe_applied(self, may_have_applied: bool) -> Self {
        self.edit(|inner| inner.may_have_applied = may_have_applied)
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the path that the error concerns, if any.
    pub fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// Returns the method that failed, for example `create` of a client or `acquire` of a lock.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Returns the recipe's error that was converted into this one, if its type is `E`.
    ///
    /// # Examples
    /// ```
    /// use docent_core::{Error, ErrorKind, Fence, ParseFenceError};
    ///
    /// fn parse(text: &str) -> Result<Fence, Error> {
    ///     Ok(text.parse()?)
    /// }
    /// let error = parse("-1").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidInput);
    /// assert!(error.downcast_ref::<ParseFenceError>().is_some());
    /// ```
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.recipe.as_deref()?.downcast_ref()
    }

    /// Returns true if the same call may succeed later. See [`ErrorKind::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.0.kind.is_retryable()
    }

    /// Returns true if a guard was lost.
    pub fn is_lost(&self) -> bool {
        matches!(self.0.kind, ErrorKind::Lost(_))
    }

    /// Returns true if an overloaded server rejected the request for now.
    pub(crate) fn is_throttled(&self) -> bool {
        self.0.kind == ErrorKind::Server(Code::THROTTLED.0)
    }

    /// Returns true if a server answered with a refusal.
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

    /// Returns true if the operation may have taken effect although it failed. False means that it took no
    /// effect, except perhaps one that can be repeated without harm; see [`ErrorKind::Timeout`].
    pub fn may_have_applied(&self) -> bool {
        self.0.may_have_applied
    }
}

/// Returns `None` if the operation failed because the node does not exist.
///
/// ```no_run
/// # use docent_core::{Client, Error, recipe::if_exists};
/// # async fn run(client: &Client) -> Result<(), Error> {
/// if let Some(children) = if_exists(client.children("/jobs").await)? {
///     println!("{} jobs", children.names.len());
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// Any other error of the operation.
pub fn if_exists<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::NoNode => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(recipe) = &self.0.recipe {
            return recipe.fmt(f);
        }
        f.write_str(self.0.operation)?;
        if let Some(path) = &self.0.path {
            write!(f, " {path:?}")?;
        }
        match (&self.0.detail, self.0.kind) {
            (Some(detail), ErrorKind::InvalidInput | ErrorKind::Server(_)) => write!(f, ": {detail}"),
            (Some(detail), kind) => write!(f, ": {}: {detail}", kind.text()),
            (None, kind) => write!(f, ": {kind}"),
        }?;
        // Besides the reason, a caller needs to know whether the change may have been applied.
        if self.0.may_have_applied && self.0.kind != ErrorKind::OutcomeUnknown {
            f.write_str(" (the change may have been applied)")?;
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
            .field("recipe", &self.0.recipe)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.recipe {
            // The recipe's error is this error, as in `std::io::Error`: as a source it would print twice.
            Some(recipe) => recipe.source(),
            None => self.0.source.as_ref().map(|source| source.as_ref() as _),
        }
    }
}

/// Returns the permission that an operation needs, if there is exactly one.
fn needed(operation: &str) -> Option<&'static str> {
    Some(match operation {
        "create" => "CREATE on the parent",
        "delete" | "ensure_absent" => "DELETE on the parent",
        "get" | "children" | "watch" | "watch_data" | "watch_children" | "participants" => "READ",
        "set" => "WRITE",
        "acl" => "READ or ADMIN",
        "set_acl" => "ADMIN",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_small_and_names_operation_path_and_cause() {
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
