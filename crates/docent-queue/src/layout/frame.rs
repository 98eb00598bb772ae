//! Framing of an item's bytes in its node.

use bytes::{BufMut, Bytes, BytesMut};

/// Prefix of an item: a mark and the format version, 1. It is followed by four bytes with the number that is
/// added to the servers' count of the item's claims.
const NATIVE: [u8; 4] = [0xd0, 0xce, 0x00, 0x01];
const NATIVE_HEAD: usize = 8;

/// Prefix of Curator's format: a version. Then come the items, each with a code before its length, and an end
/// code.
const CURATOR: [u8; 4] = [0x00, 0x01, 0x00, 0x01];
const CURATOR_ITEM: u8 = 0x01;
const CURATOR_END: u8 = 0x02;

/// Reason for which a node does not hold an item.
pub(crate) type Malformed = String;

/// Returns the data of an item's node; `base` is added to the servers' count of the item's claims.
pub(crate) fn native(item: &[u8], base: i32) -> Bytes {
    [&NATIVE, &base.to_be_bytes()[..], item].concat().into()
}

/// Returns the number that is added to the servers' count of claims, and the item.
pub(crate) fn of_native(node: &Bytes) -> Result<(i32, Bytes), Malformed> {
    let [a, b, version @ ..] = node.get(..4).ok_or("the frame is truncated")? else {
        return Err("the frame is truncated".to_owned());
    };
    if !is_native(&[*a, *b]) {
        return Err("the data is not a queue item".to_owned());
    }
    if version != &NATIVE[2..] {
        let version = u16::from_be_bytes([version[0], version[1]]);
        return Err(format!("the format version is {version}, and not 1"));
    }
    let base =
        node.get(4..NATIVE_HEAD).and_then(|base| base.try_into().ok()).ok_or("the frame is truncated")?;
    Ok((i32::from_be_bytes(base), node.slice(NATIVE_HEAD..)))
}

/// Returns whether the data of a node is that of an item, in whatever version.
pub(crate) fn is_native(node: &[u8]) -> bool {
    node.starts_with(&NATIVE[..2])
}

/// Returns whether the data of a node is that of an item of a Curator queue.
pub(crate) fn is_curator(node: &[u8]) -> bool {
    node.starts_with(&CURATOR)
}

pub(crate) fn curator(item: &[u8]) -> Option<Bytes> {
    let mut frame = BytesMut::with_capacity(item.len() + 10);
    frame.put_slice(&CURATOR);
    frame.put_u8(CURATOR_ITEM);
    frame.put_i32(i32::try_from(item.len()).ok()?);
    frame.put_slice(item);
    frame.put_u8(CURATOR_END);
    Some(frame.freeze())
}

/// Returns the single item of a node. Nodes of `putMulti` have several items, which is an error.
pub(crate) fn of_curator(node: &Bytes) -> Result<Bytes, Malformed> {
    let truncated = || "the frame is truncated".to_owned();
    let mut rest = node.clone();
    if rest.len() < 4 {
        return Err(truncated());
    }
    if rest.split_to(4)[..] != CURATOR {
        return Err("the data is not an item of a Curator queue".to_owned());
    }
    let mut items = Vec::new();
    loop {
        match rest.first() {
            Some(&CURATOR_END) if rest.len() == 1 => break,
            Some(&CURATOR_END) => return Err("there are bytes after the end of the item".to_owned()),
            Some(&CURATOR_ITEM) => {}
            Some(other) => return Err(format!("the code {other:#04x} is neither an item nor an end")),
            None => return Err(truncated()),
        }
        let length = rest.get(1..5).ok_or_else(truncated)?;
        let length = i32::from_be_bytes(length.try_into().map_err(|_| truncated())?);
        let length = usize::try_from(length).map_err(|_| format!("a length of {length} is negative"))?;
        let _ = rest.split_to(5);
        if rest.len() < length {
            return Err(truncated());
        }
        items.push(rest.split_to(length));
    }
    match items.as_slice() {
        [item] => Ok(item.clone()),
        items => Err(format!("there are {} items in one node, and not 1", items.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curator_frame_is_curators_byte_for_byte() {
        let frame = curator(b"hello").unwrap();
        assert_eq!(frame[..], *b"\x00\x01\x00\x01\x01\x00\x00\x00\x05hello\x02");
        assert_eq!(of_curator(&frame).unwrap()[..], *b"hello");
        assert_eq!(of_curator(&curator(b"").unwrap()).unwrap().len(), 0);
    }

    #[test]
    fn a_native_frame_has_a_version() {
        assert_eq!(native(b"a", -2)[..], *b"\xd0\xce\x00\x01\xff\xff\xff\xfea");
        assert_eq!(of_native(&native(b"a", -2)).unwrap(), (-2, Bytes::from_static(b"a")));
        let newer = of_native(&Bytes::from_static(b"\xd0\xce\x00\x02a")).unwrap_err();
        assert!(newer.contains("is 2, and not 1"), "{newer}");
    }

    #[test]
    fn a_truncated_or_changed_frame_is_refused_without_a_panic() {
        let of_native = |node: &Bytes| of_native(node).map(|(_, item)| item);
        for (frame, read, head) in [
            (native(b"hello", 0), &of_native as &dyn Fn(&Bytes) -> Result<Bytes, Malformed>, 8),
            (curator(b"hello").unwrap(), &of_curator, 4),
        ] {
            for length in 0..head {
                assert!(read(&frame.slice(..length)).is_err());
            }
            for index in 0..4 {
                let mut wrong = frame.to_vec();
                wrong[index] ^= 0x55;
                assert!(read(&wrong.into()).is_err(), "{index}");
            }
        }
        let frame = curator(b"hello").unwrap();
        for length in 0..frame.len() {
            assert!(of_curator(&frame.slice(..length)).is_err());
        }
        for wrong in [
            &b"\x00\x01\x00\x01\x01\xff\xff\xff\xffhello\x02"[..],
            b"\x00\x01\x00\x01\x01\x7f\xff\xff\xffhello\x02",
            b"\x00\x01\x00\x01\x03\x00\x00\x00\x05hello\x02",
            b"\x00\x01\x00\x01\x01\x00\x00\x00\x05hello\x02\x02",
            b"\x00\x01\x00\x01\x02",
        ] {
            assert!(of_curator(&Bytes::copy_from_slice(wrong)).is_err(), "{wrong:x?}");
        }
        let two = Bytes::from_static(b"\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x01b\x02");
        assert!(of_curator(&two).unwrap_err().contains("2 items in one node"));
    }
}
