use super::*;

/// Bytes of a reply, above the machines' limit of 1,024.
const SIZE: usize = 5_000;

/// Returns a reply of that size.
fn large(xid: i32) -> BytesMut {
    let mut out = BytesMut::new();
    write_frame(&mut out, |out| {
        ReplyHeader { xid, zxid: 9, code: Code::OK }.write(out);
        out.resize(4 + SIZE, 0);
    });
    out
}

fn is_too_large(outcome: &mut Receiver<Outcome>) -> bool {
    let expected = Cause::TooLarge { size: SIZE, limit: 1_024 };
    matches!(outcome.try_recv(), Ok(Outcome::Unknown(cause)) if cause == expected)
}

#[test]
fn a_reply_above_the_limit_is_an_error_of_its_request_alone() {
    for step in [1, 7, 1_000, 4 * SIZE] {
        let mut world = World::attached();
        let (_, mut read) = world.get("/large", true);
        let (_, mut next) = world.get("/next", false);
        world.written();
        let mut bytes = large(1);
        let mut answer = BytesMut::new();
        write_frame(&mut answer, |out| {
            ReplyHeader { xid: 2, zxid: 10, code: Code::OK }.write(out);
            data().write(out);
        });
        bytes.extend_from_slice(&answer);
        let mut input = BytesMut::new();
        while !bytes.is_empty() {
            input.extend_from_slice(&bytes.split_to(step.min(bytes.len())));
            world.received(&mut input).unwrap();
            assert!(input.len() <= 1_024 + step, "{} bytes of the discarded reply are kept", input.len());
        }
        assert!(is_too_large(&mut read), "in parts of {step}");
        assert!(matches!(next.try_recv(), Ok(Outcome::Reply(_))), "in parts of {step}");
        assert!(world.machine.link_state().up);
    }
}

#[test]
fn the_rest_of_a_large_reply_is_discarded_with_its_link() {
    let mut world = World::attached();
    let (_, mut read) = world.get("/large", false);
    world.written();
    world.bytes(large(1).split_to(2_000)).unwrap();
    assert!(is_too_large(&mut read));
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let (_, mut next) = world.get("/next", false);
    let sent = world.written();
    world.answer(sent[0].xid, Code::OK, &data()).unwrap();
    assert!(matches!(next.try_recv(), Ok(Outcome::Reply(_))));
}

#[test]
fn a_large_reply_that_arrives_slowly_keeps_the_link() {
    let mut world = World::attached();
    let (_, _read) = world.get("/large", false);
    let (_, _next) = world.get("/next", false);
    world.written();
    let mut bytes = large(1);
    for _ in 0..8 {
        world.pass(T / 12);
        world.bytes(bytes.split_to(600)).unwrap();
        assert!(world.machine.tick(world.now).is_ok());
        world.written();
    }
}

#[test]
fn a_large_frame_that_answers_nothing_costs_the_link() {
    for xid in [7, xid::PING, xid::NOTIFICATION, xid::SET_WATCHES] {
        let mut world = World::attached();
        let (_, _read) = world.get("/a", false);
        world.written();
        assert!(world.bytes(large(xid)).is_err(), "number {xid}");
    }
}
