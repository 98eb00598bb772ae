//! Decodes replies into text.

use super::operation::{Field, Operation};
use super::piece::Line;
use anyhow::{Result, bail, ensure};
use bytes::Buf;

/// Type of the result of a failed operation in a multi.
const FAILED: i32 = -1;

/// Decodes replies, and appends them to lines.
pub(crate) struct Decoder<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) root: &'a str,
    pub(crate) line: &'a mut Line,
}

impl Decoder<'_> {
    /// Appends the body of a reply. Remaining bytes are appended unchanged.
    pub(crate) fn body(&mut self, operation: &Operation) {
        if let Err(error) = self.fields(operation.reply) {
            self.line.push(&format!(" ({error})"));
        }
        self.rest();
    }

    /// Appends all remaining bytes.
    pub(crate) fn rest(&mut self) {
        if !self.bytes.is_empty() {
            self.line.push(&format!(" rest={}", self.bytes.escape_ascii()));
        }
        self.bytes = &[];
    }

    fn fields(&mut self, fields: &[Field]) -> Result<()> {
        fields.iter().try_for_each(|field| self.field(*field))
    }

    fn field(&mut self, field: Field) -> Result<()> {
        match field {
            Field::Path => {
                let path = self.path()?;
                self.line.push(&format!(" {path}"));
            }
            Field::Text | Field::Data => {
                let data = self.buffer()?.map_or("null".to_owned(), |data| data.escape_ascii().to_string());
                self.line.push(&format!(" {data:?}"));
            }
            Field::Int => {
                let number = self.i32()?;
                self.line.push(&format!(" {number}"));
            }
            Field::Stat => self.stat()?,
            Field::Names => self.names()?,
            Field::Acl => self.acl()?,
            Field::Identities => self.identities()?,
            Field::Results => self.results()?,
            Field::Long | Field::Bool | Field::Paths | Field::Seen | Field::Operations => {
                bail!("{field:?} is not a field of replies")
            }
        }
        Ok(())
    }

    /// Appends everything except times.
    fn stat(&mut self) -> Result<()> {
        ensure!(self.bytes.len() >= 68, "stat ends early");
        let (czxid, mzxid) = (self.i64()?, self.i64()?);
        let (_ctime, _mtime) = (self.i64()?, self.i64()?);
        let (version, cversion, aversion) = (self.i32()?, self.i32()?, self.i32()?);
        let owner = self.i64()?;
        let (length, children, pzxid) = (self.i32()?, self.i32()?, self.i64()?);
        self.line.push(" [c=");
        self.line.zxid(czxid);
        self.line.push(" m=");
        self.line.zxid(mzxid);
        self.line.push(" p=");
        self.line.zxid(pzxid);
        self.line.push(&format!(" v={version}.{cversion}.{aversion} owner="));
        self.line.session(owner);
        self.line.push(&format!(" len={length} children={children}]"));
        Ok(())
    }

    fn names(&mut self) -> Result<()> {
        let count = self.i32()?;
        let mut names = (0..count).map(|_| self.path()).collect::<Result<Vec<_>>>()?;
        names.sort();
        self.line.push(&format!(" {{{}}}", names.join(" ")));
        Ok(())
    }

    /// Appends the entries in order. Entries that stand for the identities of a client have no defined order,
    /// and are sorted.
    fn acl(&mut self) -> Result<()> {
        let count = self.i32()?;
        let entry = |_| Ok((format!("{}:{}", self.i32()?, self.text()?), self.text()?));
        let mut entries = (0..count).map(entry).collect::<Result<Vec<_>>>()?;
        entries.chunk_by_mut(|one, next| one.0 == next.0).for_each(<[_]>::sort);
        for (scheme, id) in entries {
            self.line.push(&format!(" {scheme}:{id}"));
        }
        Ok(())
    }

    fn identities(&mut self) -> Result<()> {
        let count = self.i32()?;
        let pair = |_| Ok(format!("{}:{}", self.text()?, self.text()?));
        let mut identities = (0..count).map(pair).collect::<Result<Vec<_>>>()?;
        identities.sort();
        self.line.push(&format!(" {{{}}}", identities.join(" ")));
        Ok(())
    }

    fn results(&mut self) -> Result<()> {
        loop {
            let code = self.i32()?;
            let done = self.u8()?;
            let error = self.i32()?;
            if done != 0 {
                if (code, done, error) != (-1, 1, -1) {
                    self.line.push(&format!("; end={code},{done},{error}"));
                }
                return Ok(());
            }
            self.line.push(&format!("; {code}/{error}"));
            match Operation::of_code(code) {
                _ if code == FAILED => self.fields(&[Field::Int])?,
                Some(operation) => self.fields(operation.reply)?,
                None => bail!("{code} is not an operation"),
            }
        }
    }

    /// Reads a path, without the script's root.
    pub(crate) fn path(&mut self) -> Result<String> {
        let path = self.text()?;
        Ok(match path.strip_prefix(self.root) {
            Some("") => "/".to_owned(),
            Some(rest) => rest.to_owned(),
            None if path.starts_with('/') => format!("={path}"),
            None => path,
        })
    }

    fn text(&mut self) -> Result<String> {
        Ok(self.buffer()?.map_or("null".to_owned(), |text| String::from_utf8_lossy(text).into_owned()))
    }

    fn buffer(&mut self) -> Result<Option<&[u8]>> {
        let length = self.i32()?;
        let Ok(length) = usize::try_from(length) else {
            ensure!(length == -1, "length {length}");
            return Ok(None);
        };
        ensure!(self.bytes.len() >= length, "buffer ends early");
        let (buffer, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Ok(Some(buffer))
    }

    pub(crate) fn i32(&mut self) -> Result<i32> {
        ensure!(self.bytes.len() >= 4, "number ends early");
        Ok(self.bytes.get_i32())
    }

    pub(crate) fn i64(&mut self) -> Result<i64> {
        ensure!(self.bytes.len() >= 8, "number ends early");
        Ok(self.bytes.get_i64())
    }

    fn u8(&mut self) -> Result<u8> {
        ensure!(!self.bytes.is_empty(), "byte is missing");
        Ok(self.bytes.get_u8())
    }
}
