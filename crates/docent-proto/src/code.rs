use std::fmt;

/// Result code of a reply. Zero is success. Codes that have no constant here are kept unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Returns a short description of the code, or `None` if the code has no constant here.
            pub fn text(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Success.
    OK = 0, "ok";
    /// An operation of a multi that was not executed because an earlier one failed.
    RUNTIME_INCONSISTENCY = -2, "not tried because another operation of the multi failed";
    /// The server could not parse the request.
    MARSHALLING_ERROR = -5, "request could not be read";
    /// The server does not implement this operation, or the operation is disabled.
    UNIMPLEMENTED = -6, "operation is not implemented";
    /// An argument breaks a rule, such as the rules for paths.
    BAD_ARGUMENTS = -8, "bad arguments";
    /// The node does not exist.
    NO_NODE = -101, "no such node";
    /// Permission is missing.
    NO_AUTH = -102, "permission denied";
    /// The given version is not the node's version.
    BAD_VERSION = -103, "version does not match";
    /// Ephemeral nodes cannot have children.
    NO_CHILDREN_FOR_EPHEMERALS = -108, "ephemeral nodes cannot have children";
    /// The node exists already.
    NODE_EXISTS = -110, "node exists already";
    /// The node has children.
    NOT_EMPTY = -111, "node has children";
    /// The session has expired.
    SESSION_EXPIRED = -112, "session expired";
    /// The access control list is empty or invalid.
    INVALID_ACL = -114, "access control list is not valid";
    /// Authentication failed.
    AUTH_FAILED = -115, "authentication failed";
    /// The session is now served by another server.
    SESSION_MOVED = -118, "session moved to another server";
    /// A write was sent to a read-only server.
    NOT_READ_ONLY = -119, "server is read-only";
    /// No such watch is set.
    NO_WATCHER = -121, "no such watch";
    /// Dynamic reconfiguration is disabled.
    RECONFIG_DISABLED = -123, "reconfiguration is disabled";
    /// The server accepts requests only from authenticated sessions.
    SESSION_CLOSED_REQUIRE_SASL_AUTH = -124, "server requires an authenticated session";
    /// A quota of the path is exceeded.
    QUOTA_EXCEEDED = -125, "quota exceeded";
    /// The server is overloaded.
    THROTTLED = -127, "server throttled the request";
}

impl Code {
    /// Returns `Ok` for success, and the code itself as the error otherwise.
    ///
    /// # Errors
    /// The code, if it is not [`Code::OK`].
    pub fn into_result(self) -> Result<(), Self> {
        if self == Self::OK { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => f.write_str(text),
            None => write!(f, "error code {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({}: {self})", self.0)
    }
}
