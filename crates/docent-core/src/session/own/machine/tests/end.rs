use super::*;

#[test]
fn a_session_unknown_to_the_server_has_ended() {
    let mut world = World::attached();
    let (_, mut waiting) = world.get("/a", false);
    world.lose_link();
    world.attach(0, Duration::ZERO).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
    assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(Cause::Ended(SessionEnd::Expired)))));
    assert_eq!(world.submit(Request::Ping).unwrap_err(), Cause::Ended(SessionEnd::Expired));
}

#[test]
fn a_session_is_abandoned_one_timeout_after_the_last_possible_lease() {
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
fn a_session_that_was_never_opened_is_not_abandoned() {
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

/// A session whose close request was written on a link that was then lost.
fn closed_without_an_answer() -> World {
    let mut world = World::attached();
    world.machine.close();
    let ops: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
    assert_eq!(ops, [OpCode::CloseSession]);
    world.lose_link();
    assert_eq!(world.machine.ended(), None, "the client cannot know whether the servers closed the session");
    world
}

#[test]
fn a_close_without_an_answer_is_sent_again_on_the_next_link() {
    let mut world = closed_without_an_answer();
    for _ in 0..2 {
        world.attach(SESSION, T).unwrap();
        let ops: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
        assert_eq!(ops, [OpCode::CloseSession]);
        world.lose_link();
    }
    world.attach(SESSION, T).unwrap();
    let sent = world.written();
    assert!(!world.machine.has_certainly_ended());
    world.answer(sent[0].xid, Code::OK, &Response::Empty).unwrap();
    assert_eq!(
        (world.machine.ended(), world.machine.has_certainly_ended()),
        (Some(SessionEnd::Closed), true)
    );
}

#[test]
fn a_server_that_no_longer_knows_a_session_does_not_prove_its_end() {
    let mut world = closed_without_an_answer();
    world.attach(0, Duration::ZERO).unwrap();
    assert_eq!(
        (world.machine.ended(), world.machine.has_certainly_ended()),
        (Some(SessionEnd::Expired), false)
    );
}

#[test]
fn a_close_that_no_server_accepts_ends_with_the_session() {
    let mut world = closed_without_an_answer();
    world.pass(T * 3);
    world.machine.tick(world.now).unwrap();
    assert_eq!(
        (world.machine.ended(), world.machine.has_certainly_ended()),
        (Some(SessionEnd::Abandoned), false)
    );
}

#[test]
fn a_session_that_was_never_opened_is_closed_with_its_link() {
    let mut world = World::new();
    world.connected();
    world.machine.close();
    assert_eq!(world.machine.ended(), None);
    world.lose_link();
    assert_eq!(
        (world.machine.ended(), world.machine.has_certainly_ended()),
        (Some(SessionEnd::Closed), true)
    );
}
