use crate::strategies::{request, response};
use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::{
    Acl, Code, ConnectRequest, ConnectResponse, DecodeError, Frames, MultiResult, OpCode, Reader, Record,
    ReplyHeader, Request, RequestFrame, Response, Stat, WatchEvent,
};
use proptest::prelude::{any, prop_assert, proptest};
use std::time::{Duration, Instant};

/// Time limit that is far longer than decoding a few bytes takes, and far shorter than decoding the 2³¹ items
/// that they announce.
const AT_ONCE: Duration = Duration::from_secs(1);
const HOSTILE_COUNTS: [i32; 5] = [i32::MAX, i32::MAX - 1, 1 << 28, -2, i32::MIN];

/// Passes `bytes` to every decoder. The test is that each decoder returns.
fn decode_as_each_record(bytes: &Bytes) {
    for &op in OpCode::ALL {
        let _ = Request::read(op, &mut Reader::new(bytes.clone()));
        let _ = Response::decode(op, bytes.clone());
    }
    let _ = RequestFrame::decode(bytes.clone());
    let _ = ConnectRequest::decode(bytes.clone());
    let _ = ConnectResponse::decode(bytes.clone());
    let _ = ReplyHeader::decode(bytes.clone());
    let _ = WatchEvent::decode(bytes.clone());
    let _ = Stat::decode(bytes.clone());
    let _ = Acl::decode(bytes.clone());
}

/// Returns the size of everything that a decoded value holds, measured by the capacity of its vectors.
fn room(response: &Response) -> usize {
    match response {
        Response::Children { names, .. } => {
            names.capacity() + names.iter().map(String::capacity).sum::<usize>()
        }
        Response::Acl { acl, .. } => acl.capacity(),
        Response::Multi(results) => results.capacity(),
        Response::Ephemerals(paths) => paths.capacity() + paths.iter().map(String::capacity).sum::<usize>(),
        Response::Clients(clients) => clients.capacity(),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        decode_as_each_record(&bytes.into());
    }

    #[test]
    fn a_request_with_a_wrong_byte_gives_a_value_or_an_error(
        request in request(), at in any::<proptest::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut out = BytesMut::new();
        RequestFrame { xid: 1, request }.encode(&mut out);
        let at = at.index(out.len());
        out[at] = byte;
        decode_as_each_record(&out.clone().freeze().slice(4..));
        let _ = Frames::new(1024).next(&mut out);
    }

    #[test]
    fn a_response_with_a_wrong_byte_gives_a_value_or_an_error(
        (_, response) in response(), at in any::<proptest::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut out = BytesMut::from(&[0][..]);
        response.write(&mut out);
        let at = at.index(out.len());
        out[at] = byte;
        decode_as_each_record(&out.freeze());
    }

    #[test]
    fn a_stream_of_any_bytes_gives_frames_within_the_limit_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), limit in 0_usize..100,
    ) {
        let mut received = BytesMut::from(&bytes[..]);
        while let Ok(Some(frame)) = Frames::new(limit).next(&mut received) {
            prop_assert!(frame.len() <= limit);
        }
    }

    #[test]
    fn a_decoded_value_allocates_no_more_than_its_bytes_justify((op, response) in response()) {
        let mut out = BytesMut::new();
        response.write(&mut out);
        let length = out.len();
        let room = room(&Response::decode(op, out.freeze()).unwrap());
        prop_assert!(room <= length, "{:?} of {} bytes has room for {}", op, length, room);
    }
}

#[test]
fn a_count_larger_than_the_bytes_is_an_error_immediately() {
    for (count, op) in HOSTILE_COUNTS.iter().flat_map(|count| OpCode::ALL.iter().map(|op| (*count, *op))) {
        let mut body = BytesMut::new();
        body.put_i32(count);
        body.put_bytes(0, 64);
        let started = Instant::now();
        let read = Response::decode(op, body.freeze());
        assert!(started.elapsed() < AT_ONCE, "{op:?} took {:?} for a count of {count}", started.elapsed());
        assert!(read.is_err() || matches!(read, Ok(Response::Stat(_))), "{op:?} of {count} is {read:?}");
    }
}

#[test]
fn hostile_counts_inside_a_request_are_errors_immediately() {
    for count in HOSTILE_COUNTS {
        let mut watches = BytesMut::new();
        watches.put_i64(0);
        watches.put_i32(count);
        let mut acl = BytesMut::new();
        acl.put_i32(1);
        acl.put_slice(b"/");
        acl.put_i32(count);
        for (op, body) in [
            (OpCode::SetWatches, watches.clone()),
            (OpCode::SetWatches2, watches),
            (OpCode::SetAcl, acl.clone()),
            (OpCode::Create, acl),
        ] {
            let started = Instant::now();
            let read = Request::read(op, &mut Reader::new(body.freeze()));
            assert!(started.elapsed() < AT_ONCE && read.is_err(), "{op:?} with a count of {count}: {read:?}");
        }
    }
}

#[test]
fn a_null_vector_reads_as_empty_and_reserves_nothing() {
    let mut body = BytesMut::new();
    body.put_i32(-1);
    match Response::decode(OpCode::GetChildren, body.freeze()) {
        Ok(Response::Children { names, stat: None }) => assert_eq!((names.len(), names.capacity()), (0, 0)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_announced_frame_reserves_nothing() {
    let mut received = BytesMut::with_capacity(8);
    received.put_i32(1 << 20);
    received.put_i32(0);
    let room = received.capacity();
    assert_eq!(Frames::new(1 << 20).next(&mut received), Ok(None));
    assert_eq!(received.capacity(), room);
    for length in [-1, i32::MIN, (1 << 20) + 1, i32::MAX] {
        let mut received = BytesMut::from(&length.to_be_bytes()[..]);
        let refused = DecodeError::FrameLength { length, limit: 1 << 20 };
        assert_eq!(Frames::new(1 << 20).next(&mut received), Err(refused));
    }
}

/// Returns the memory in bytes that the results of a multi take in addition to their data, which stays in the
/// received buffer.
fn memory(results: &[MultiResult], capacity: usize) -> usize {
    let on_heap = |result: &MultiResult| match result {
        MultiResult::Created { path, stat } => {
            path.capacity() + stat.as_ref().map_or(0, |_| size_of::<Stat>())
        }
        MultiResult::Set(_) | MultiResult::Data { .. } => size_of::<Stat>(),
        _ => 0,
    };
    capacity * size_of::<MultiResult>() + results.iter().map(on_heap).sum::<usize>()
}

#[test]
fn the_results_of_a_multi_take_a_few_times_their_frame() {
    for result in [
        MultiResult::Deleted,
        MultiResult::Checked,
        MultiResult::Failed(Code::NO_NODE),
        MultiResult::Set(Stat::default().into()),
        MultiResult::Created { path: "/a".to_owned(), stat: None },
        MultiResult::Data { data: None, stat: Stat::default().into() },
    ] {
        let mut out = BytesMut::new();
        // One more than a power of two, up to which growing vectors reserve room.
        Response::Multi(vec![result.clone(); 1_025]).write(&mut out);
        let frame = out.len();
        let decoded = Response::decode(OpCode::Multi, out.freeze()).unwrap();
        let Response::Multi(results) = decoded else { panic!("{decoded:?}") };
        let memory = memory(&results, results.capacity());
        assert!(memory <= frame * 6, "{memory} bytes for {frame} of {result:?}");
    }
}
