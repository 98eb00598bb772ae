//! Frames that ZooKeeper 3.8.0 and its Java client really sent: each frame is decoded to its meaning, and
//! encoded back to the same bytes. The files in `frames` hold one frame each, with its length.

mod replies;
mod requests;

use bytes::{Bytes, BytesMut};
use docent_proto::{ConnectRequest, ConnectResponse, DecodeError, Frames, Record, write_frame};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Session that was opened when the frames were recorded.
const SESSION: i64 = 0x0100_0022_7224_0000;
const PASSWORD: [u8; 16] = 0x9e8d_c15d_d371_e22e_acd4_32f9_d45d_e991_u128.to_be_bytes();
const NO_PASSWORD: [u8; 16] = [0; 16];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/frames")
}

/// Returns the bytes of a recorded frame, with its length.
fn recorded(name: &str) -> Vec<u8> {
    let path = folder().join(format!("{name}.hex"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let digits = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits")).collect()
}

/// Returns the recorded frame without its length.
fn frame(name: &str) -> Bytes {
    let mut received = BytesMut::from(&recorded(name)[..]);
    let frame = Frames::new(1024).next(&mut received).expect("a good length").expect("a complete frame");
    assert!(received.is_empty(), "{name} is more than one frame");
    frame
}

/// Asserts that `write` produces the recorded frame.
fn assert_encodes(name: &str, write: impl FnOnce(&mut BytesMut)) {
    let mut out = BytesMut::new();
    write_frame(&mut out, write);
    assert_eq!(&out[..], &recorded(name)[..], "{name}");
}

/// Asserts that no proper prefix of the recorded frame is accepted as a complete frame.
fn assert_needs_every_byte<T: std::fmt::Debug>(name: &str, decode: impl Fn(Bytes) -> Result<T, DecodeError>) {
    let frame = frame(name);
    for length in 0..frame.len() {
        let read = decode(frame.slice(..length));
        assert!(read.is_err(), "{name} is accepted as complete after {length} bytes: {read:?}");
    }
}

fn connect_requests() -> Vec<(&'static str, ConnectRequest)> {
    let new = ConnectRequest {
        last_zxid_seen: 0,
        timeout_ms: 6_000,
        session_id: 0,
        password: Bytes::copy_from_slice(&NO_PASSWORD),
        read_only: Some(false),
    };
    let again = ConnectRequest {
        last_zxid_seen: 15,
        session_id: SESSION,
        password: Bytes::copy_from_slice(&PASSWORD),
        ..new.clone()
    };
    let expired = ConnectRequest { session_id: 0x1_2345_6789, ..new.clone() };
    vec![("connect-request", new), ("reconnect-request", again), ("connect-gone-request", expired)]
}

fn connect_responses() -> Vec<(&'static str, ConnectResponse)> {
    let opened = ConnectResponse {
        timeout_ms: 6_000,
        session_id: SESSION,
        password: Bytes::copy_from_slice(&PASSWORD),
        read_only: Some(false),
    };
    let expired = ConnectResponse {
        timeout_ms: 0,
        session_id: 0,
        password: Bytes::copy_from_slice(&NO_PASSWORD),
        read_only: Some(false),
    };
    vec![
        ("connect-response", opened.clone()),
        ("reconnect-response", opened),
        ("connect-gone-response", expired),
    ]
}

/// The last field may be missing, as with clients before 3.4, so the frame without this field is the only
/// accepted prefix.
fn assert_connect<R: Record + PartialEq + std::fmt::Debug>(name: &str, expected: &R) {
    assert_eq!(&R::decode(frame(name)).expect("a connect frame"), expected, "{name}");
    assert_encodes(name, |out| expected.write(out));
    let without_read_only = frame(name).len() - 1;
    assert_needs_every_byte(name, |part| {
        if part.len() == without_read_only { Err(DecodeError::Trailing(0)) } else { R::decode(part) }
    });
    let old = R::decode(frame(name).slice(..without_read_only)).expect("an old client's frame");
    assert_ne!(&old, expected, "{name}");
}

#[test]
fn connects_are_read_and_written_as_recorded() {
    connect_requests().iter().for_each(|(name, expected)| assert_connect(name, expected));
    connect_responses().iter().for_each(|(name, expected)| assert_connect(name, expected));
}

#[test]
fn a_part_of_a_frame_is_not_a_frame() {
    for name in names() {
        let whole = recorded(&name);
        for length in 0..whole.len() {
            let mut part = BytesMut::from(&whole[..length]);
            assert_eq!(Frames::new(1024).next(&mut part), Ok(None), "{name} after {length} bytes");
        }
    }
}

#[test]
fn every_recorded_frame_is_decoded() {
    let mut covered: BTreeSet<String> = BTreeSet::new();
    covered.extend(connect_requests().iter().map(|(name, _)| (*name).to_owned()));
    covered.extend(connect_responses().iter().map(|(name, _)| (*name).to_owned()));
    covered.extend(requests::expected().iter().map(|(name, ..)| format!("{name}-request")));
    covered.extend(replies::expected().iter().map(|reply| format!("{}-response", reply.name)));
    covered.extend(replies::events().iter().map(|(name, _)| format!("event-{name}")));
    assert_eq!(names(), covered);
}

fn names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder()).expect("the folder of frames");
    let files = entries.map(|entry| entry.expect("a readable folder").path());
    files.map(|path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned()).collect()
}
