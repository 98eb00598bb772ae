use crate::request::{Create, CreateKind, OpCode};
use crate::wire::{Reader, Record, Write};
use crate::{Code, DecodeError, Stat};
use bytes::{BufMut, Bytes};
use std::fmt;

/// One operation of a multi.
#[derive(Clone, PartialEq, Eq)]
pub enum MultiOp {
    /// Create a node.
    Create(Create),
    /// Delete a node.
    Delete {
        /// Path of the node.
        path: String,
        /// Required version; −1 for any.
        version: i32,
    },
    /// Set a node's data.
    SetData {
        /// Path of the node.
        path: String,
        /// The new data; `None` is null.
        data: Option<Bytes>,
        /// Required version; −1 for any.
        version: i32,
    },
    /// Check that a node exists and has a version.
    Check {
        /// Path of the node.
        path: String,
        /// Required version; −1 for any.
        version: i32,
    },
    /// Read a node's data (only in a multi-read).
    GetData {
        /// Path of the node.
        path: String,
    },
    /// List a node's children (only in a multi-read).
    GetChildren {
        /// Path of the node.
        path: String,
    },
}

impl MultiOp {
    /// Returns the path of the operation's node.
    pub fn path(&self) -> &str {
        match self {
            Self::Create(create) => &create.path,
            Self::Delete { path, .. }
            | Self::SetData { path, .. }
            | Self::Check { path, .. }
            | Self::GetData { path }
            | Self::GetChildren { path } => path,
        }
    }

    /// Returns the number of bytes that the operation adds to a request: its fields and its header.
    pub(crate) fn payload_len(&self) -> usize {
        const HEADER_AND_LENGTHS: usize = 32;
        HEADER_AND_LENGTHS
            + match self {
                Self::Create(create) => create.payload_len(),
                Self::SetData { path, data, .. } => path.len() + data.as_ref().map_or(0, Bytes::len),
                other => other.path().len(),
            }
    }

    fn op(&self) -> OpCode {
        match self {
            Self::Create(create) => create.kind.op(),
            Self::Delete { .. } => OpCode::Delete,
            Self::SetData { .. } => OpCode::SetData,
            Self::Check { .. } => OpCode::Check,
            Self::GetData { .. } => OpCode::GetData,
            Self::GetChildren { .. } => OpCode::GetChildren,
        }
    }

    fn write(&self, out: &mut impl BufMut) {
        match self {
            Self::Create(create) => create.write(out),
            Self::Delete { path, version } | Self::Check { path, version } => {
                out.string(path);
                out.put_i32(*version);
            }
            Self::SetData { path, data, version } => {
                out.string(path);
                out.buffer(data.as_deref());
                out.put_i32(*version);
            }
            Self::GetData { path } | Self::GetChildren { path } => {
                out.string(path);
                out.bool(false);
            }
        }
    }

    fn read(op: OpCode, reader: &mut Reader) -> Result<Self, DecodeError> {
        if let Some(kind) = CreateKind::from_op(op) {
            return Create::read(kind, reader).map(Self::Create);
        }
        Ok(match op {
            OpCode::Delete => Self::Delete { path: reader.text()?, version: reader.i32()? },
            OpCode::Check => Self::Check { path: reader.text()?, version: reader.i32()? },
            OpCode::SetData => {
                Self::SetData { path: reader.text()?, data: reader.buffer()?, version: reader.i32()? }
            }
            OpCode::GetData | OpCode::GetChildren => {
                let path = reader.text()?;
                let _watch = reader.flag()?;
                if op == OpCode::GetData { Self::GetData { path } } else { Self::GetChildren { path } }
            }
            other => return Err(DecodeError::UnknownOpCode(other as i32)),
        })
    }
}

// Payloads are never printed.
impl fmt::Debug for MultiOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({})", self.op(), self.path())
    }
}

/// Result of one operation of a multi.
///
/// Most results take nine bytes of a frame, so larger ones are boxed.
#[derive(Clone, PartialEq, Eq)]
pub enum MultiResult {
    /// The node was created.
    Created {
        /// Path of the node, with the number if the mode is sequential.
        path: String,
        /// Stat of the node, for the kinds of create that return it.
        stat: Option<Box<Stat>>,
    },
    /// The node was deleted.
    Deleted,
    /// The data was set.
    Set(Box<Stat>),
    /// The check succeeded.
    Checked,
    /// Data of a node.
    Data {
        /// The data; `None` is null.
        data: Option<Bytes>,
        /// Stat of the node.
        stat: Box<Stat>,
    },
    /// Names of the children.
    Children(Vec<String>),
    /// The operation failed. If an operation of a multi of writes fails, none is applied: the results before
    /// it have [`Code::OK`], and the results after it [`Code::RUNTIME_INCONSISTENCY`].
    Failed(Code),
}

impl MultiResult {
    /// Returns the index and the code of the operation that failed. Returns `None` if the multi was applied.
    pub fn first_failure(results: &[Self]) -> Option<(usize, Code)> {
        results.iter().enumerate().find_map(|(index, result)| match result {
            Self::Failed(code) if *code != Code::OK => Some((index, *code)),
            _ => None,
        })
    }
}

impl fmt::Debug for MultiResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created { path, .. } => write!(f, "Created({path})"),
            Self::Deleted => f.write_str("Deleted"),
            Self::Set(stat) => write!(f, "Set({stat:?})"),
            Self::Checked => f.write_str("Checked"),
            Self::Data { data, stat } => {
                write!(f, "Data({} bytes, {stat:?})", data.as_ref().map_or(0, Bytes::len))
            }
            Self::Children(names) => write!(f, "Children({})", names.len()),
            Self::Failed(code) => write!(f, "Failed({code:?})"),
        }
    }
}

/// Type in the header of a failed operation's result, and of the end of a multi.
const NO_TYPE: i32 = -1;

struct Header {
    kind: i32,
    done: bool,
    error: i32,
}

impl Header {
    const END: Self = Self { kind: NO_TYPE, done: true, error: -1 };

    fn write(&self, out: &mut impl BufMut) {
        out.put_i32(self.kind);
        out.bool(self.done);
        out.put_i32(self.error);
    }

    fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { kind: reader.i32()?, done: reader.bool()?, error: reader.i32()? })
    }

    fn read_in_request(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { kind: reader.i32()?, done: reader.flag()?, error: reader.i32()? })
    }
}

pub(crate) fn write_ops(ops: &[MultiOp], out: &mut impl BufMut) {
    for op in ops {
        Header { kind: op.op() as i32, done: false, error: -1 }.write(out);
        op.write(out);
    }
    Header::END.write(out);
}

pub(crate) fn read_ops(reader: &mut Reader) -> Result<Vec<MultiOp>, DecodeError> {
    let mut ops = Vec::new();
    loop {
        let header = Header::read_in_request(reader)?;
        if header.done {
            return Ok(ops);
        }
        ops.push(MultiOp::read(OpCode::from_number(header.kind)?, reader)?);
    }
}

pub(crate) fn write_results(results: &[MultiResult], out: &mut impl BufMut) {
    for result in results {
        let kind = match result {
            MultiResult::Created { stat: None, .. } => OpCode::Create as i32,
            MultiResult::Created { stat: Some(_), .. } => OpCode::Create2 as i32,
            MultiResult::Deleted => OpCode::Delete as i32,
            MultiResult::Set(_) => OpCode::SetData as i32,
            MultiResult::Checked => OpCode::Check as i32,
            MultiResult::Data { .. } => OpCode::GetData as i32,
            MultiResult::Children(_) => OpCode::GetChildren as i32,
            MultiResult::Failed(_) => NO_TYPE,
        };
        let error = if let MultiResult::Failed(code) = result { code.0 } else { 0 };
        Header { kind, done: false, error }.write(out);
        match result {
            MultiResult::Created { path, stat } => {
                out.string(path);
                if let Some(stat) = stat {
                    stat.write(out);
                }
            }
            MultiResult::Deleted | MultiResult::Checked => {}
            MultiResult::Set(stat) => stat.write(out),
            MultiResult::Data { data, stat } => {
                out.buffer(data.as_deref());
                stat.write(out);
            }
            MultiResult::Children(names) => out.vec(names, |out, name| out.string(name)),
            MultiResult::Failed(code) => out.put_i32(code.0),
        }
    }
    Header::END.write(out);
}

pub(crate) fn read_results(reader: &mut Reader) -> Result<Vec<MultiResult>, DecodeError> {
    // A growing vector would reserve room for up to twice as many results, and each result is several times
    // larger than its bytes in the frame.
    let mut results = Vec::with_capacity(count_results(reader.clone()));
    loop {
        let header = Header::read(reader)?;
        if header.done {
            return Ok(results);
        }
        results.push(read_result(header.kind, reader)?);
    }
}

/// Returns the number of results that can be read.
fn count_results(mut reader: Reader) -> usize {
    let skip = || {
        let header = Header::read(&mut reader).ok().filter(|header| !header.done)?;
        skip_result(header.kind, &mut reader).ok()
    };
    std::iter::from_fn(skip).count()
}

fn skip_result(kind: i32, reader: &mut Reader) -> Result<(), DecodeError> {
    if kind == NO_TYPE {
        return reader.i32().map(|_| ());
    }
    match OpCode::from_number(kind)? {
        OpCode::Create => reader.buffer().map(|_| ()),
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl | OpCode::GetData => {
            reader.buffer()?;
            Stat::read(reader).map(|_| ())
        }
        OpCode::SetData => Stat::read(reader).map(|_| ()),
        OpCode::GetChildren => {
            let count = reader.i32()?;
            (0..count).try_for_each(|_| reader.buffer().map(|_| ()))
        }
        _ => Ok(()),
    }
}

fn read_result(kind: i32, reader: &mut Reader) -> Result<MultiResult, DecodeError> {
    if kind == NO_TYPE {
        return Ok(MultiResult::Failed(Code(reader.i32()?)));
    }
    Ok(match OpCode::from_number(kind)? {
        OpCode::Create => MultiResult::Created { path: reader.string()?, stat: None },
        OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => {
            MultiResult::Created { path: reader.string()?, stat: Some(Stat::read(reader)?.into()) }
        }
        OpCode::Delete => MultiResult::Deleted,
        OpCode::SetData => MultiResult::Set(Stat::read(reader)?.into()),
        OpCode::Check => MultiResult::Checked,
        OpCode::GetData => MultiResult::Data { data: reader.buffer()?, stat: Stat::read(reader)?.into() },
        OpCode::GetChildren => MultiResult::Children(reader.vec(Reader::string)?),
        other => return Err(DecodeError::UnknownOpCode(other as i32)),
    })
}
