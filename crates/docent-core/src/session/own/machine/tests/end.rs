use super::*;

#[test]
fn a_session_the_server_does_not_know_is_over() {
    let mut world = World::attached();
    let (_, mut waiting) = world.get("/a", false);
    world.lose_link();
    world.attach(0, Duration::ZERO).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
    assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(Cause::Ended(SessionEnd::Expired)))));
    assert_eq!(world.submit(Request::Ping).unwrap_err(), Cause::Ended(SessionEnd::Expired));
}

#[test]
fn a_session_is_given_up_one_timeout_after_the_last_possible_lease() {
    let mut world = World::attached();
    let answered = world.now;
    world.lose_link();
    let lease = T * 2 / 3;
    assert_eq!(world.machine.next_deadline(), Some(answered + lease + T));
    world.pass(lease + T - Duration::from_millis(1));
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), None);
    world.pass(Duration::from_millis(1));
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Abandoned));
}

#[test]
fn a_session_that_was_never_opened_is_not_given_up() {
    let mut world = World::new();
    world.pass(T * 100);
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), None);
}

#[test]
fn draining_ends_calls_and_watches_and_closing_ends_the_session() {
    let mut world = World::attached();
    let (_, mut written) = world.get("/a", false);
    world.written();
    let (_, mut waiting) = world.get("/b", false);
    let (_, mut watch) = world.machine.watches.register("/a", WatchKind::Data);
    world.machine.drain();
    world.deliver();
    let closed = Cause::Ended(SessionEnd::Closed);
    assert!(matches!(written.try_recv(), Ok(Outcome::Unknown(cause)) if cause == closed));
    assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(cause)) if cause == closed));
    assert_eq!(watch.try_recv(), Ok(Fired::Ended(SessionEnd::Closed)));
    assert_eq!(world.submit(Request::Ping).unwrap_err(), closed);

    let delete = Request::Delete { path: "/a".to_owned(), version: -1 };
    let (_, mut cleanup) = world.machine.submit(delete, Lane::Cleanup, None).unwrap();
    world.machine.close();
    let ops: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
    assert_eq!(ops, [OpCode::Delete, OpCode::CloseSession]);
    world.answer(1, Code::OK, &data()).unwrap();
    world.answer(2, Code::OK, &Response::Empty).unwrap();
    assert!(matches!(cleanup.try_recv(), Ok(Outcome::Reply(_))));
    world.answer(3, Code::OK, &Response::Empty).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Closed));
}
