//! Meaning of the crate's results in Docent's terms.

use docent_proto::Code;
use zookeeper_client::Error;

/// Reason why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server answered with this code.
    Answered(Code),
    /// No answer arrived, or none that can be decoded. The request may have been applied.
    Lost,
    /// The session has ended, because the servers expired it or the crate gave it up. The crate does not
    /// report which.
    Expired,
    /// The servers keep the session, but no longer serve it over this connection.
    Refused,
    /// The session was closed.
    Closed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::NoNode => Code::NO_NODE,
            Error::NoAuth => Code::NO_AUTH,
            Error::BadVersion => Code::BAD_VERSION,
            Error::NoChildrenForEphemerals => Code::NO_CHILDREN_FOR_EPHEMERALS,
            Error::NodeExists => Code::NODE_EXISTS,
            Error::NotEmpty => Code::NOT_EMPTY,
            Error::InvalidAcl => Code::INVALID_ACL,
            Error::NotReadOnly => Code::NOT_READ_ONLY,
            Error::NoWatcher => Code::NO_WATCHER,
            Error::QuotaExceeded => Code::QUOTA_EXCEEDED,
            Error::Throttled => Code::THROTTLED,
            Error::MarshallingError => Code::MARSHALLING_ERROR,
            Error::Unimplemented => Code::UNIMPLEMENTED,
            Error::BadArguments(_) => Code::BAD_ARGUMENTS,
            Error::ReconfigDisabled => Code::RECONFIG_DISABLED,
            Error::UnexpectedErrorCode(code) => Code(code),
            Error::SessionExpired => return Self::Expired,
            Error::SessionMoved | Error::AuthFailed => return Self::Refused,
            Error::ClientClosed => return Self::Closed,
            // A reset or a missed heartbeat is `Custom`; a reply that cannot be decoded is `UnmarshalError`
            // or `UnexpectedError`.
            _ => return Self::Lost,
        };
        Self::Answered(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_without_an_answer_leaves_the_outcome_unknown() {
        for error in [
            Error::ConnectionLoss,
            Error::Timeout,
            Error::NoHosts,
            Error::UnexpectedError("no reply".to_owned()),
            Error::UnmarshalError { entity: "stat", reason: &"it is short" },
            Error::RuntimeInconsistent,
        ] {
            assert_eq!(Failure::from(error), Failure::Lost);
        }
    }

    #[test]
    fn codes_keep_their_numbers() {
        assert_eq!(Failure::from(Error::NoNode), Failure::Answered(Code::NO_NODE));
        assert_eq!(Failure::from(Error::UnexpectedErrorCode(-128)), Failure::Answered(Code(-128)));
    }
}
