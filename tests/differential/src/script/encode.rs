//! Encodes requests from text.

use super::operation::{Field, Operation};
use anyhow::{Context, Result, ensure};
use bytes::BufMut;

/// Names of one run, which the text of a script leaves open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// Path below which the script creates its nodes.
    pub(crate) root: &'a str,
    /// Latest transaction that the session has seen.
    pub(crate) seen: i64,
}

/// Appends the body of a request.
pub(crate) fn body(
    operation: &Operation,
    fields: &[String],
    names: Names<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if operation.request == [Field::Operations] {
        return operations(fields, names, out);
    }
    ensure!(
        fields.len() == operation.request.len(),
        "{} has {} fields",
        operation.name,
        operation.request.len()
    );
    operation.request.iter().zip(fields).try_for_each(|(form, text)| field(*form, text, names, out))
}

/// Appends the operations of a multi, which are separated by semicolons.
fn operations(fields: &[String], names: Names<'_>, out: &mut Vec<u8>) -> Result<()> {
    for part in fields.split(|word| word == ";").filter(|part| !part.is_empty()) {
        let operation =
            Operation::find(&part[0]).with_context(|| format!("{:?} is not an operation", part[0]))?;
        header(operation.code, false, out);
        body(operation, &part[1..], names, out)?;
    }
    header(-1, true, out);
    Ok(())
}

fn header(code: i32, done: bool, out: &mut Vec<u8>) {
    out.put_i32(code);
    out.put_u8(u8::from(done));
    out.put_i32(-1);
}

fn field(form: Field, text: &str, names: Names<'_>, out: &mut Vec<u8>) -> Result<()> {
    match form {
        Field::Path => buffer(path(text, names.root).as_deref(), out),
        Field::Text | Field::Data => buffer(bytes(text).as_deref(), out),
        Field::Int => out.put_i32(text.parse()?),
        Field::Long => out.put_i64(text.parse()?),
        Field::Bool => out.put_u8(text.parse()?),
        Field::Seen => out.put_i64(if text == "seen" { names.seen } else { text.parse()? }),
        Field::Acl => acl(text, out)?,
        Field::Paths => list(text, out, |entry, out| {
            buffer(path(entry, names.root).as_deref(), out);
            Ok(())
        })?,
        Field::Operations | Field::Stat | Field::Names | Field::Identities | Field::Results => {
            anyhow::bail!("{form:?} is not a field of requests")
        }
    }
    Ok(())
}

fn acl(text: &str, out: &mut Vec<u8>) -> Result<()> {
    let text = match text {
        "open" => "31:world:anyone",
        "read" => "1:world:anyone",
        other => other,
    };
    list(text, out, |entry, out| {
        let mut parts = entry.splitn(3, ':');
        out.put_i32(parts.next().unwrap_or_default().parse()?);
        buffer(bytes(parts.next().unwrap_or_default()).as_deref(), out);
        buffer(bytes(parts.next().unwrap_or_default()).as_deref(), out);
        Ok(())
    })
}

fn list(
    text: &str,
    out: &mut Vec<u8>,
    mut entry: impl FnMut(&str, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let entries: Vec<&str> = match text {
        "null" => {
            out.put_i32(-1);
            return Ok(());
        }
        "-" => Vec::new(),
        entries => entries.split(',').collect(),
    };
    out.put_i32(i32::try_from(entries.len())?);
    entries.into_iter().try_for_each(|text| entry(text, out))
}

fn buffer(bytes: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(bytes) = bytes else { return out.put_i32(-1) };
    out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    out.put_slice(bytes);
}

/// Converts a path. A path with a leading slash is below `root`; a path after an equals sign is used
/// unchanged.
pub(crate) fn path(text: &str, root: &str) -> Option<Vec<u8>> {
    match (text, text.strip_prefix('=')) {
        ("/", _) => Some(root.into()),
        (_, Some(whole)) => bytes(whole),
        _ if text.starts_with('/') => bytes(text).map(|rest| [root.as_bytes(), &rest].concat()),
        _ => bytes(text),
    }
}

/// Converts a text: `null`, `""` for no bytes, `*N` for N letters, or text with bytes written as `\x0a`.
fn bytes(text: &str) -> Option<Vec<u8>> {
    match text {
        "null" => return None,
        "\"\"" => return Some(Vec::new()),
        _ => {}
    }
    if let Some(count) = text.strip_prefix('*').and_then(|count| count.parse().ok()) {
        return Some(vec![b'z'; count]);
    }
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        bytes.extend(u8::from_str_radix(hex, 16));
        bytes.extend(rest.as_bytes());
    }
    Some(bytes)
}
