use crate::strategies::{acl, connect_request, connect_response, event, header, request, response, stat};
use bytes::{BufMut, BytesMut};
use docent_proto::{Frames, Record, RequestFrame, Response, write_frame};
use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;
use std::fmt::Debug;

fn survives_round_trip<R: Record + PartialEq + Debug>(record: &R) -> Result<(), TestCaseError> {
    let mut out = BytesMut::new();
    record.write(&mut out);
    let read = R::decode(out.freeze());
    prop_assert_eq!(read.as_ref(), Ok(record));
    Ok(())
}

proptest! {
    #[test]
    fn records_survive_a_round_trip(
        acl in acl(), stat in stat(), header in header(), event in event(),
        connect in connect_request(), connected in connect_response(),
    ) {
        survives_round_trip(&acl)?;
        survives_round_trip(&stat)?;
        survives_round_trip(&header)?;
        survives_round_trip(&event)?;
        survives_round_trip(&connect)?;
        survives_round_trip(&connected)?;
    }

    #[test]
    fn requests_survive_a_round_trip(xid in any::<i32>(), request in request()) {
        let sent = RequestFrame { xid, request };
        let mut wire = BytesMut::new();
        sent.encode(&mut wire);
        let frame = Frames::new(wire.len()).next(&mut wire).unwrap().unwrap();
        prop_assert_eq!(RequestFrame::decode(frame).unwrap(), sent);
    }

    #[test]
    fn responses_survive_a_round_trip((op, response) in response()) {
        let mut out = BytesMut::new();
        response.write(&mut out);
        prop_assert_eq!(Response::decode(op, out.freeze()).unwrap(), response);
    }

    #[test]
    fn frames_survive_any_split_of_the_stream(
        bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..30), 0..6),
        cuts in proptest::collection::vec(1_usize..20, 1..10),
    ) {
        let mut wire = BytesMut::new();
        bodies.iter().for_each(|body| write_frame(&mut wire, |out| out.put_slice(body)));
        let (frames, mut received, mut read) = (Frames::new(30), BytesMut::new(), Vec::new());
        for cut in cuts.iter().cycle() {
            while let Some(frame) = frames.next(&mut received).unwrap() {
                read.push(frame.to_vec());
            }
            if wire.is_empty() {
                break;
            }
            received.extend_from_slice(&wire.split_to((*cut).min(wire.len())));
        }
        prop_assert_eq!(read, bodies);
    }
}
