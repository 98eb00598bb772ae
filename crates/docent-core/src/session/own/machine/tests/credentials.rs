use super::*;

fn with_two_credentials() -> World {
    let credentials = |user| Credentials::digest(user, &"secret".into());
    World::with(vec![credentials("first"), credentials("second")])
}

fn is_up(world: &World) -> bool {
    world.machine.link_state().up
}

#[test]
fn credentials_go_first_on_every_link_and_nothing_follows_before_they_are_accepted() {
    let mut world = with_two_credentials();
    let (_, _read) = world.get("/a", false);
    let (_, _watch) = world.machine.watches.register("/w", WatchKind::Data);
    for _ in 0..2 {
        world.attach(SESSION, T).unwrap();
        let sent: Vec<_> = world.written().into_iter().map(|frame| (frame.xid, frame.request)).collect();
        let auth = |user: &str| {
            let credentials = Bytes::from(format!("{user}:secret"));
            (xid::AUTH, Request::Auth { scheme: "digest".to_owned(), credentials })
        };
        assert_eq!(sent, [auth("first"), auth("second")]);
        world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
        assert!(world.written().is_empty() && !is_up(&world), "one reply is still outstanding");
        world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
        assert!(is_up(&world));
        assert_eq!(world.written()[0].request.op(), OpCode::SetWatches);
        world.lose_link();
    }
}

#[test]
fn a_reply_to_credentials_may_arrive_between_other_replies() {
    let mut world = World::attached();
    let (_, mut read) = world.get("/a", false);
    world.written();
    world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
    world.answer(1, Code::OK, &data()).unwrap();
    assert!(matches!(read.try_recv(), Ok(Outcome::Reply(_))));
}

#[test]
fn refused_credentials_end_the_session_and_nothing_of_it_was_sent() {
    let mut world = with_two_credentials();
    let (_, mut waiting) = world.get("/a", false);
    world.attach(SESSION, T).unwrap();
    world.written();
    world.answer(xid::AUTH, Code::AUTH_FAILED, &Response::Empty).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::AuthFailed));
    let refused = Cause::Ended(SessionEnd::AuthFailed);
    assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(cause)) if cause == refused));
    assert_eq!(world.submit(Request::Ping).unwrap_err(), refused);
}

#[test]
fn a_server_that_wants_credentials_ends_the_session() {
    let mut world = World::attached();
    let (_, mut read) = world.get("/a", false);
    world.written();
    world.answer(1, Code::SESSION_CLOSED_REQUIRE_SASL_AUTH, &Response::Empty).unwrap();
    assert!(matches!(read.try_recv(), Ok(Outcome::Reply(_))));
    assert_eq!(world.machine.ended(), Some(SessionEnd::AuthFailed));
}

#[test]
fn credentials_that_are_not_answered_cost_the_link_in_the_time_of_a_handshake() {
    let mut world = with_two_credentials();
    world.attach(SESSION, T).unwrap();
    world.written();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 3));
    world.pass(T / 3);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Handshake)));
}

#[test]
fn nothing_in_the_machine_prints_a_password() {
    let mut world = with_two_credentials();
    world.attach(SESSION, T).unwrap();
    let printed = format!("{:?} {:#?}", world.machine, world.machine);
    for secret in ["secret", "[115, 101, 99", "73656372"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}
