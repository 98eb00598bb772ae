use super::hub::{Hub, Progress};
use super::link::Place;
use super::members::LEADER;
use crate::config::Config;
use crate::state::{Origin, State};
use crate::time::Clock;
use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::{ConnectRequest, OpCode, Record, Request, RequestFrame, write_frame};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof};
use proptest::proptest;
use proptest::sample::select;
use std::sync::Arc;
use std::time::Duration;

fn entered() -> Place {
    let (config, clock) = (Config::default(), Clock::new(|| Duration::ZERO));
    let state = State::new(config.clone(), Origin::at(Duration::ZERO));
    let hub = Arc::new(Hub::new(&config, clock, state));
    Place::enter(&hub, ([127, 0, 0, 1], 1).into(), LEADER).expect("the first link is within the limit")
}

fn connected() -> Place {
    let place = entered();
    let mut input = BytesMut::new();
    let request = ConnectRequest {
        last_zxid_seen: 0,
        timeout_ms: 10_000,
        session_id: 0,
        password: Bytes::new(),
        read_only: None,
    };
    write_frame(&mut input, |out| request.write(out));
    assert_eq!(place.hub.receive(place.id, &mut input, 0), Progress::Hungry);
    place
}

/// An operation that does not end the session.
fn going_on() -> impl Strategy<Value = OpCode> {
    select(OpCode::ALL).prop_filter("the session ends", |op| *op != OpCode::CloseSession)
}

/// A body made of pieces of requests, so that some of them can be read as one.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![-2_i32..40, any::<i32>()].prop_map(|number| number.to_be_bytes().to_vec());
    let path = select(vec!["/", "/a", "/a/b", "", "/\0", "/zookeeper", "world", "anyone"]).prop_map(|path| {
        let mut out = BytesMut::new();
        out.put_u32(u32::try_from(path.len()).unwrap_or(0));
        out.put_slice(path.as_bytes());
        out.to_vec()
    });
    let noise = vec(any::<u8>(), 0..6);
    vec(prop_oneof![3 => path, 3 => number, 1 => noise], 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_bytes_before_the_handshake_panic(bytes in vec(any::<u8>(), 0..200)) {
        let place = entered();
        place.hub.receive(place.id, &mut BytesMut::from(&bytes[..]), 0);
    }

    #[test]
    fn no_bytes_after_the_handshake_panic(bytes in vec(any::<u8>(), 0..200)) {
        let place = connected();
        place.hub.receive(place.id, &mut BytesMut::from(&bytes[..]), 0);
    }

    #[test]
    fn no_sequence_of_half_right_requests_panics(requests in vec((going_on(), body()), 1..20)) {
        let place = connected();
        for (op, body) in requests {
            let mut input = BytesMut::new();
            write_frame(&mut input, |out| {
                out.put_i32(1);
                out.put_i32(op as i32);
                out.put_slice(&body);
            });
            place.hub.receive(place.id, &mut input, 0);
        }
    }
}

#[test]
fn requests_wait_while_their_client_has_not_read_enough_of_the_answers() {
    const DATA: usize = 100_000;
    let place = connected();
    let (hub, id) = (&place.hub, place.id);
    let mut input = BytesMut::new();
    let data = Some(Bytes::from(vec![0; DATA]));
    RequestFrame { xid: 1, request: Request::SetData { path: "/".into(), data, version: -1 } }
        .encode(&mut input);
    for xid in 2..100 {
        let request = Request::GetData { path: "/".into(), watch: false };
        RequestFrame { xid, request }.encode(&mut input);
    }
    let mut rounds = 0;
    while hub.receive(id, &mut input, 0) == Progress::Full {
        assert!(hub.take_output(id).len() < 4 * DATA);
        rounds += 1;
    }
    assert!(rounds > 20 && input.is_empty(), "{rounds} rounds");
}
