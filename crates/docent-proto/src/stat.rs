use crate::DecodeError;
use crate::wire::{Reader, Record};
use bytes::{Buf, BufMut};

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
