use crate::DecodeError;
use crate::wire::{Reader, Record, Write};
use bytes::BufMut;
use std::borrow::Cow;
use std::fmt;
use std::ops::BitOr;

/// Permissions of an entry of an access control list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Permissions(pub i32);

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
    /// All operations.
    pub const ALL: Self = Self(31);

    /// Returns whether all permissions of `other` are included.
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

/// Entry of an access control list: a client and its permitted operations.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Acl {
    /// Operations that the entry permits.
    pub permissions: Permissions,
    /// Scheme by which `id` is checked: `world`, `auth`, `digest`, `ip`, `x509`, `sasl`.
    pub scheme: Cow<'static, str>,
    /// Identity of the client, in the format of the scheme.
    pub id: Cow<'static, str>,
}

impl Acl {
    /// Returns a list that permits all operations to every client.
    pub fn open() -> Vec<Self> {
        vec![Self { permissions: Permissions::ALL, scheme: "world".into(), id: "anyone".into() }]
    }

    /// Reads the list of a request as the real server does: null becomes the empty list, which the server
    /// refuses too.
    pub(crate) fn read_list(reader: &mut Reader) -> Result<Vec<Self>, DecodeError> {
        reader.list(Self::read_in_request).map(Option::unwrap_or_default)
    }

    /// Reads an entry of a request. A null scheme becomes an empty one. A null id is an error for the schemes
    /// that check the id.
    fn read_in_request(reader: &mut Reader) -> Result<Self, DecodeError> {
        let permissions = Permissions(reader.i32()?);
        let scheme = reader.optional_text()?.unwrap_or_default();
        let id = reader.optional_text()?;
        if id.is_none() && matches!(scheme.as_str(), "world" | "digest" | "ip") {
            return Err(DecodeError::InvalidString);
        }
        Ok(Self { permissions, scheme: scheme.into(), id: id.unwrap_or_default().into() })
    }
}

// The id of the scheme `digest` contains an unsalted hash of a password, so it is never printed.
impl fmt::Debug for Acl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acl")
            .field("permissions", &self.permissions)
            .field("scheme", &self.scheme)
            .finish_non_exhaustive()
    }
}

impl Record for Acl {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i32(self.permissions.0);
        out.string(&self.scheme);
        out.string(&self.id);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            permissions: Permissions(reader.i32()?),
            scheme: reader.string()?.into(),
            id: reader.string()?.into(),
        })
    }
}
