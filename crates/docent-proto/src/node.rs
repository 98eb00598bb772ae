//! What the servers keep about a node beside its data: stat, access control list and mode of creation.

use crate::DecodeError;
use crate::wire::{Reader, Record, Write};
use bytes::{Buf, BufMut};
use std::borrow::Cow;
use std::fmt;
use std::ops::BitOr;

/// Size of a stat in bytes: six long fields and five short ones.
const SIZE: usize = 6 * 8 + 5 * 4;

/// Metadata of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Stat {
    /// Transaction that created the node.
    pub czxid: i64,
    /// Transaction that last changed the node's data.
    pub mzxid: i64,
    /// Time of the creation, in milliseconds since 1970 by the server's clock.
    pub ctime: i64,
    /// Time of the last change of the data, in milliseconds since 1970 by the server's clock.
    pub mtime: i64,
    /// Number of changes of the data.
    pub version: i32,
    /// Number of changes of the set of children.
    pub cversion: i32,
    /// Number of changes of the access control list.
    pub aversion: i32,
    /// Session that owns the node if it is ephemeral; otherwise 0.
    pub ephemeral_owner: i64,
    /// Length of the data in bytes.
    pub data_length: i32,
    /// Number of children.
    pub num_children: i32,
    /// Transaction that last changed the set of children.
    pub pzxid: i64,
}

impl Record for Stat {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i64(self.czxid);
        out.put_i64(self.mzxid);
        out.put_i64(self.ctime);
        out.put_i64(self.mtime);
        out.put_i32(self.version);
        out.put_i32(self.cversion);
        out.put_i32(self.aversion);
        out.put_i64(self.ephemeral_owner);
        out.put_i32(self.data_length);
        out.put_i32(self.num_children);
        out.put_i64(self.pzxid);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let fields = reader.array::<SIZE>()?;
        let mut fields = fields.as_slice();
        Ok(Self {
            czxid: fields.get_i64(),
            mzxid: fields.get_i64(),
            ctime: fields.get_i64(),
            mtime: fields.get_i64(),
            version: fields.get_i32(),
            cversion: fields.get_i32(),
            aversion: fields.get_i32(),
            ephemeral_owner: fields.get_i64(),
            data_length: fields.get_i32(),
            num_children: fields.get_i32(),
            pzxid: fields.get_i64(),
        })
    }
}

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

/// Mode of a new node: its lifetime, and whether a number is appended to its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CreateMode {
    /// The node exists until it is deleted.
    #[default]
    Persistent,
    /// The node exists until it is deleted or the session that created it ends. It cannot have children.
    Ephemeral,
    /// Like `Persistent`; the parent's counter is appended to the name as ten digits.
    PersistentSequential,
    /// Like `Ephemeral`; the parent's counter is appended to the name as ten digits.
    EphemeralSequential,
    /// The node exists until it is deleted. The server deletes it some time after the deletion of its last
    /// child.
    Container,
    /// The node exists until it is deleted, or until it has had neither a change nor a child for a given
    /// time. Servers disable this mode by default.
    PersistentTtl,
    /// Like `PersistentTtl`; the parent's counter is appended to the name as ten digits.
    PersistentSequentialTtl,
}

impl CreateMode {
    const ALL: [Self; 7] = [
        Self::Persistent,
        Self::Ephemeral,
        Self::PersistentSequential,
        Self::EphemeralSequential,
        Self::Container,
        Self::PersistentTtl,
        Self::PersistentSequentialTtl,
    ];

    /// Returns the number of the mode on the wire.
    pub fn flags(self) -> i32 {
        self as i32
    }

    /// Returns the mode with the number `flags`.
    pub fn from_flags(flags: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(flags).ok()?).copied()
    }

    /// Returns whether the parent's counter is appended to the name.
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::PersistentSequential | Self::EphemeralSequential | Self::PersistentSequentialTtl)
    }

    /// Returns whether the node is deleted with its session.
    pub fn is_ephemeral(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralSequential)
    }

    /// Returns whether the node is deleted after a given time without a change or child.
    pub fn has_ttl(self) -> bool {
        matches!(self, Self::PersistentTtl | Self::PersistentSequentialTtl)
    }
}
