use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use docent_proto as proto;
use secrecy::{ExposeSecret, SecretString};
use sha1::{Digest, Sha1};
use std::borrow::Cow;
use std::fmt;
use std::ops::BitOr;

/// Operations that an entry of an access control list allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions(i32);

impl Permissions {
    /// Read data and list children.
    pub const READ: Self = Self(1);
    /// Change data.
    pub const WRITE: Self = Self(2);
    /// Create children.
    pub const CREATE: Self = Self(4);
    /// Delete children.
    pub const DELETE: Self = Self(8);
    /// Change the access control list.
    pub const ADMIN: Self = Self(16);
    /// Everything.
    pub const ALL: Self = Self(31);

    const NAMED: [(Self, &str); 5] = [
        (Self::READ, "READ"),
        (Self::WRITE, "WRITE"),
        (Self::CREATE, "CREATE"),
        (Self::DELETE, "DELETE"),
        (Self::ADMIN, "ADMIN"),
    ];

    pub(crate) const fn into_bits(self) -> i32 {
        self.0
    }

    /// Returns true if `other` is allowed entirely.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Prints the names, for example `READ | WRITE`.
impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMED.into_iter().filter(|(permission, _)| self.contains(*permission));
        let names: Vec<_> = named.map(|(_, name)| name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(" | "))
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permissions({self})")
    }
}

/// Entry of an access control list: an identity, and the operations that it allows. A list allows what any of
/// its entries allows.
///
/// Lists are not inherited: each node has its own. Any client with permission READ on a node sees the names
/// of its children, so a path must not contain a secret.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Acl {
    /// Operations that the entry allows.
    pub permissions: Permissions,
    /// Scheme that checks `id`: `world`, `auth`, `digest`, `ip`, `x509`, `sasl`.
    pub scheme: String,
    /// Identity in the scheme's terms. For `digest` it is not printed, because it allows offline guessing of
    /// the password.
    pub id: String,
}

impl Acl {
    /// Creates an entry in any scheme that the servers support.
    pub fn new(permissions: Permissions, scheme: impl Into<String>, id: impl Into<String>) -> Self {
        Self { permissions, scheme: scheme.into(), id: id.into() }
    }

    /// Allows everything to every client that reaches the port. Such a client can delete a lock, and thereby
    /// cause a second holder.
    pub fn open_unsafe() -> Self {
        Self::new(Permissions::ALL, "world", "anyone")
    }

    /// Allows every client to read.
    pub fn read_all() -> Self {
        Self::new(Permissions::READ, "world", "anyone")
    }

    /// Allows everything to the creator of the node, that is, to all identities that the client has on its
    /// link at that time.
    pub fn creator_all() -> Self {
        Self::new(Permissions::ALL, "auth", "")
    }

    /// Allows `permissions` to a client with these credentials. Keeps the hash that servers store, not the
    /// password.
    pub fn digest(user: &str, password: impl Into<SecretString>, permissions: Permissions) -> Self {
        let mut hash = Sha1::new();
        for part in [user, ":", password.into().expose_secret()] {
            hash.update(part);
        }
        Self::new(permissions, "digest", format!("{user}:{}", STANDARD.encode(hash.finalize())))
    }
}

// The hash of a password is a secret, too, because it is unsalted SHA-1.
impl fmt::Debug for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = match (self.scheme.as_str(), self.id.split_once(':')) {
            ("digest", Some((user, _))) => format!("{user}:***"),
            _ => self.id.clone(),
        };
        f.debug_struct("Acl")
            .field("permissions", &self.permissions)
            .field("scheme", &self.scheme)
            .field("id", &id)
            .finish()
    }
}

impl From<Acl> for proto::Acl {
    fn from(acl: Acl) -> Self {
        let permissions = proto::Permissions(acl.permissions.0);
        Self { permissions, scheme: shared(acl.scheme), id: shared(acl.id) }
    }
}

impl From<proto::Acl> for Acl {
    fn from(acl: proto::Acl) -> Self {
        let permissions = Permissions(acl.permissions.0);
        Self { permissions, scheme: acl.scheme.into_owned(), id: acl.id.into_owned() }
    }
}

/// Returns `text`, borrowed if it is one of the words that most lists use, so that copies of it cost nothing.
fn shared(text: String) -> Cow<'static, str> {
    const COMMON: [&str; 4] = ["world", "anyone", "auth", ""];
    match COMMON.into_iter().find(|common| *common == text) {
        Some(common) => Cow::Borrowed(common),
        None => Cow::Owned(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_one_that_zookeeper_computes_and_is_not_printed() {
        let acl = Acl::digest("super", "test", Permissions::READ | Permissions::WRITE);
        assert_eq!(acl.id, "super:D/InIHSb7yEEbrWz8b9l71RjZJU=");
        assert_eq!(
            format!("{acl:?}"),
            "Acl { permissions: Permissions(READ | WRITE), scheme: \"digest\", id: \"super:***\" }"
        );
    }
}
