//! Format of the state file: a line with the title and the version, the length of the image, the image, and
//! the SHA-1 of everything before.

use super::error::KeepFault;
use bytes::{Buf, Bytes};
use sha1::{Digest, Sha1};
use std::io::{self, Write};

/// The format version that is written, and the only one that can be read.
pub(super) const VERSION: u32 = 1;

/// First line of the file, up to the version.
const TITLE: &str = "docent-server, kept at a clean stop, not durable, version ";

/// Maximum number of digits of a version.
const DIGITS: usize = 9;

const CHECKSUM: usize = 20;

/// Writes a file that contains the pieces of an image.
pub(super) fn write<P: AsRef<[u8]>>(
    mut out: impl Write,
    length: u64,
    image: impl Iterator<Item = P>,
) -> io::Result<()> {
    let mut checksum = Sha1::new();
    let mut put = |bytes: &[u8]| {
        checksum.update(bytes);
        out.write_all(bytes)
    };
    put(format!("{TITLE}{VERSION}\n").as_bytes())?;
    put(&length.to_be_bytes())?;
    for piece in image {
        put(piece.as_ref())?;
    }
    out.write_all(&checksum.finalize())?;
    out.flush()
}

/// Returns the image in a file.
pub(super) fn read(file: &Bytes) -> Result<Bytes, KeepFault> {
    let mut rest = file.clone();
    match read_version(&mut rest)? {
        VERSION => {}
        other => return Err(KeepFault::Version(other)),
    }
    let length = rest.try_get_u64().map_err(|_| missing(8, rest.len()))?;
    let needed = length.saturating_add(CHECKSUM as u64);
    let found = rest.len() as u64;
    if found < needed {
        return Err(KeepFault::CutOff { missing: needed - found });
    }
    let summed = file.len() - CHECKSUM;
    if found > needed || Sha1::digest(&file[..summed])[..] != file[summed..] {
        return Err(KeepFault::Damaged);
    }
    rest.truncate(rest.len() - CHECKSUM);
    Ok(rest)
}

/// Removes the first line from `rest` and returns the version.
fn read_version(rest: &mut Bytes) -> Result<u32, KeepFault> {
    if rest.len() < TITLE.len() && TITLE.as_bytes().starts_with(rest) {
        return Err(missing(TITLE.len(), rest.len()));
    }
    if !rest.starts_with(TITLE.as_bytes()) {
        return Err(KeepFault::Unknown);
    }
    rest.advance(TITLE.len());
    let line = &rest[..rest.len().min(DIGITS + 1)];
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        let is_short = line.len() <= DIGITS && line.iter().all(u8::is_ascii_digit);
        return Err(if is_short { missing(1, 0) } else { KeepFault::Unknown });
    };
    let digits = std::str::from_utf8(&line[..end]).ok();
    let version = digits.and_then(|digits| digits.parse().ok()).ok_or(KeepFault::Unknown)?;
    rest.advance(end + 1);
    Ok(version)
}

/// Returns the fault of a file with `found` bytes left where a field needs `needed` bytes.
fn missing(needed: usize, found: usize) -> KeepFault {
    KeepFault::CutOff { missing: (needed - found) as u64 }
}
