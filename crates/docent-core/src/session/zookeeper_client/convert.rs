//! Conversions between Docent's types and the crate's.

use docent_proto::{Acl, Code, Create, CreateKind, CreateMode, Permissions, Stat};
use std::time::Duration;
use zookeeper_client::{self as zk, Error};

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

const PERMISSIONS: [(Permissions, zk::Permission); 5] = [
    (Permissions::READ, zk::Permission::READ),
    (Permissions::WRITE, zk::Permission::WRITE),
    (Permissions::CREATE, zk::Permission::CREATE),
    (Permissions::DELETE, zk::Permission::DELETE),
    (Permissions::ADMIN, zk::Permission::ADMIN),
];

pub(super) fn options<'a>(create: &Create, acls: &'a [zk::Acl]) -> Result<zk::CreateOptions<'a>, Failure> {
    let mode = match CreateMode::from_flags(create.flags) {
        Some(CreateMode::Persistent | CreateMode::PersistentTtl) => zk::CreateMode::Persistent,
        Some(CreateMode::PersistentSequential | CreateMode::PersistentSequentialTtl) => {
            zk::CreateMode::PersistentSequential
        }
        Some(CreateMode::Ephemeral) => zk::CreateMode::Ephemeral,
        Some(CreateMode::EphemeralSequential) => zk::CreateMode::EphemeralSequential,
        Some(CreateMode::Container) => zk::CreateMode::Container,
        None => return Err(Failure::Answered(Code::BAD_ARGUMENTS)),
    };
    let options = mode.with_acls(acls.into());
    Ok(match create.kind {
        CreateKind::Ttl(ttl) => {
            options.with_ttl(Duration::from_millis(u64::try_from(ttl).unwrap_or_default()))
        }
        CreateKind::Plain | CreateKind::WithStat | CreateKind::Container => options,
    })
}

/// The crate has no version −1.
pub(super) fn any(version: i32) -> Option<i32> {
    (version != -1).then_some(version)
}

pub(super) fn to_acls(acls: &[Acl]) -> Vec<zk::Acl> {
    acls.iter().map(to_acl).collect()
}

fn to_acl(acl: &Acl) -> zk::Acl {
    let permission = PERMISSIONS
        .into_iter()
        .filter(|(own, _)| acl.permissions.contains(*own))
        .fold(zk::Permission::NONE, |all, (_, theirs)| all | theirs);
    zk::Acl::new(permission, zk::AuthId::new(&acl.scheme, &acl.id))
}

pub(super) fn from_acl(acl: &zk::Acl) -> Acl {
    let permissions = PERMISSIONS
        .into_iter()
        .filter(|(_, theirs)| acl.permission().has(*theirs))
        .fold(Permissions(0), |all, (own, _)| all | own);
    Acl { permissions, scheme: acl.scheme().to_owned().into(), id: acl.id().to_owned().into() }
}

/// Some servers return no stat for a node that a multi created.
pub(super) fn valid(stat: &zk::Stat) -> Option<Stat> {
    (!stat.is_invalid()).then(|| from_stat(stat))
}

pub(super) fn from_stat(stat: &zk::Stat) -> Stat {
    Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        num_children: stat.num_children,
        pzxid: stat.pzxid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_control_lists_survive_a_round_trip() {
        let some = Permissions::READ | Permissions::DELETE;
        let acl = Acl { permissions: some, scheme: "digest".into(), id: "me:hash".into() };
        for acl in Acl::open().into_iter().chain([acl]) {
            assert_eq!(from_acl(&to_acl(&acl)), acl);
        }
    }

    #[test]
    fn every_version_but_minus_one_is_compared() {
        assert_eq!((any(-1), any(0), any(-2)), (None, Some(0), Some(-2)));
    }

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
