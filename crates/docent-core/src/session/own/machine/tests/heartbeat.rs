use super::*;

#[test]
fn a_request_is_sent_every_sixth_of_the_timeout() {
    let mut world = World::attached();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 6));
    world.pass(T / 6);
    let ping = world.written();
    assert_eq!((ping.len(), ping[0].xid), (1, xid::PING));
    assert!(world.written().is_empty());
    // Any other request postpones the next ping.
    world.answer(xid::PING, Code::OK, &Response::Empty).unwrap();
    world.pass(T / 12);
    let _read = world.get("/a", false);
    world.written();
    world.answer(1, Code::OK, &data()).unwrap();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 6));
}

#[test]
fn lease_requests_overtake_all_waiting_requests() {
    let mut world = World::attached();
    let set =
        |size| Request::SetData { path: "/large".to_owned(), data: Some(vec![0; size].into()), version: -1 };
    // More bytes than one write takes.
    let waiting = [world.submit(set(40_000)).unwrap(), world.submit(set(40_000)).unwrap()];
    let check = Request::Multi(vec![MultiOp::Check { path: "/lock".to_owned(), version: -1 }]);
    let (id, _heartbeat) = world.machine.submit(check.clone(), Lane::Lease, None).unwrap();
    let ops = |written: Vec<RequestFrame>| written.iter().map(|frame| frame.request.op()).collect::<Vec<_>>();
    assert_eq!(ops(world.written()), [OpCode::Multi, OpCode::SetData]);
    assert!(!world.machine.requests.withdraw(id), "the request was sent");
    assert!(world.machine.requests.withdraw(waiting[1].0));
    let (id, _withdrawn) = world.machine.submit(check, Lane::Lease, None).unwrap();
    assert!(world.machine.requests.withdraw(id));
    assert!(world.written().is_empty());
}

#[test]
fn a_flood_of_events_is_processed_in_batches() {
    let mut world = World::attached();
    let mut input = BytesMut::new();
    for _ in 0..1_000 {
        write_frame(&mut input, |out| {
            ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK }.write(out);
            WatchEvent { kind: EventKind::Deleted, path: "/a".to_owned() }.write(out);
        });
    }
    let (whole, withdraw) = (input.len(), Arc::new(Lock::default()) as Arc<dyn Withdraw>);
    let more = world.machine.received(world.now, &mut input, &withdraw).unwrap();
    assert!(more && input.len() > whole / 2, "{} of {whole} bytes are left", input.len());
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
fn a_trickle_of_bytes_does_not_keep_a_link_that_owes_a_reply() {
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
