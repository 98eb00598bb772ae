use crate::DecodeError;
use crate::wire::{Reader, Record, Write};
use bytes::BufMut;

/// Kind of change of a watched node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The node was created.
    Created = 1,
    /// The node was deleted.
    Deleted = 2,
    /// The node's data was set, possibly to the same data.
    DataChanged = 3,
    /// A child was created or deleted.
    ChildrenChanged = 4,
}

impl EventKind {
    fn from_number(number: i32) -> Result<Self, DecodeError> {
        Ok(match number {
            1 => Self::Created,
            2 => Self::Deleted,
            3 => Self::DataChanged,
            4 => Self::ChildrenChanged,
            other => return Err(DecodeError::UnknownEvent(other)),
        })
    }
}

/// Notification that a watch fired.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WatchEvent {
    /// Kind of change.
    pub kind: EventKind,
    /// Path of the node.
    pub path: String,
}

/// Keeper state that servers send with every event of a node: connected.
const SYNC_CONNECTED: i32 = 3;

impl Record for WatchEvent {
    fn write(&self, out: &mut impl BufMut) {
        out.put_i32(self.kind as i32);
        out.put_i32(SYNC_CONNECTED);
        out.string(&self.path);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let kind = EventKind::from_number(reader.i32()?)?;
        let _state = reader.i32()?;
        Ok(Self { kind, path: reader.string()? })
    }
}
