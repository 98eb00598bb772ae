use super::*;

#[test]
fn something_is_sent_every_sixth_of_the_timeout() {
    let mut world = World::attached();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 6));
    world.pass(T / 6);
    let ping = world.written();
    assert_eq!((ping.len(), ping[0].xid), (1, xid::PING));
    assert!(world.written().is_empty());
    // Anything else that is sent puts the next ping off.
    world.answer(xid::PING, Code::OK, &Response::Empty).unwrap();
    world.pass(T / 12);
    let _read = world.get("/a", false);
    world.written();
    world.answer(1, Code::OK, &data()).unwrap();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 6));
}

#[test]
fn a_link_that_owes_a_reply_for_a_third_of_the_timeout_is_dropped() {
    let mut world = World::attached();
    world.pass(T / 6);
    world.written();
    world.pass(T / 3 - Duration::from_millis(1));
    assert!(world.machine.tick(world.now).is_ok());
    world.pass(Duration::from_millis(1));
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Silent)));
}

#[test]
fn bytes_that_trickle_in_do_not_keep_a_link_that_owes_a_reply_for_ever() {
    let mut world = World::attached();
    let _read = world.get("/a", false);
    world.written();
    for _ in 0..11 {
        world.pass(T / 12);
        world.bytes(BytesMut::from(&[0u8][..])).unwrap();
        assert!(world.machine.tick(world.now).is_ok());
        world.written();
    }
    world.pass(T / 12);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Silent)));
}

#[test]
fn events_do_not_keep_a_link_that_owes_a_reply() {
    let mut world = World::attached();
    world.pass(T / 6);
    world.written();
    for _ in 0..3 {
        world.pass(T / 12);
        world.event(EventKind::Deleted, "/a");
        assert!(world.machine.tick(world.now).is_ok());
    }
    world.pass(T / 12);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Silent)));
}
