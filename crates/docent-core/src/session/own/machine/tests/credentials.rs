use super::*;
use crate::session::Sasl;
use docent_proto::digest_md5;

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

/// A machine that authenticates as this user, and its session is attached.
fn with_sasl(credentials: Vec<Credentials>) -> World {
    let mut world = World::with(credentials);
    world.machine.settings.sasl = Some(Sasl::digest_md5("me", "secret"));
    world
}

/// Returns the number and the token of the step that the machine sends, alone.
fn sent_step(world: &mut World) -> (i32, Bytes) {
    let sent = world.written();
    match &sent[..] {
        [RequestFrame { xid, request: Request::Sasl { token: Some(token) } }] => (*xid, token.clone()),
        other => panic!("{other:?}"),
    }
}

fn token(token: impl Into<Bytes>) -> Response {
    Response::Sasl { token: Some(token.into()) }
}

/// Answers the first step with a challenge. Returns the number of the second step and the server's proof.
fn challenge(world: &mut World) -> (i32, Vec<u8>) {
    let (xid, first) = sent_step(world);
    assert!(first.is_empty() && world.written().is_empty() && !is_up(world));
    world.answer(xid, Code::OK, &token(digest_md5::challenge("n"))).unwrap();
    let (second, response) = sent_step(world);
    assert!(second > xid && !is_up(world));
    (second, digest_md5::verify(&response, "n", |_| Some("secret")).unwrap().1)
}

#[test]
fn sasl_goes_first_on_every_link_and_nothing_follows_before_it_is_accepted() {
    let mut world = with_sasl(Vec::new());
    let (_, mut read) = world.get("/a", false);
    for _ in 0..2 {
        world.attach(SESSION, T).unwrap();
        let (xid, proof) = challenge(&mut world);
        world.answer(xid, Code::OK, &token(proof)).unwrap();
        assert!(is_up(&world));
        assert_eq!(world.written()[0].request.op(), OpCode::GetData);
        world.lose_link();
        assert!(matches!(read.try_recv(), Ok(Outcome::Unknown(_))));
        read = world.get("/a", false).1;
    }
}

#[test]
fn credentials_and_sasl_must_both_be_accepted() {
    let mut world = with_sasl(vec![Credentials::digest("user", &"word".into())]);
    let (_, _read) = world.get("/a", false);
    world.attach(SESSION, T).unwrap();
    let sent: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
    assert_eq!(sent, [OpCode::Sasl, OpCode::Auth]);
    world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
    assert!(world.written().is_empty() && !is_up(&world));
    world.answer(1, Code::OK, &token(digest_md5::challenge("n"))).unwrap();
    let (xid, response) = sent_step(&mut world);
    let (_, proof) = digest_md5::verify(&response, "n", |_| Some("secret")).unwrap();
    world.answer(xid, Code::OK, &token(proof)).unwrap();
    assert!(is_up(&world));
}

#[test]
fn a_user_refused_at_any_step_ends_the_session_and_nothing_of_it_was_sent() {
    for code in [Code::AUTH_FAILED, Code::SESSION_CLOSED_REQUIRE_SASL_AUTH, Code::OK] {
        let mut world = with_sasl(Vec::new());
        let (_, mut waiting) = world.get("/a", false);
        world.attach(SESSION, T).unwrap();
        let (xid, _) = challenge(&mut world);
        world.answer(xid, code, &Response::Sasl { token: None }).unwrap();
        assert_eq!(world.machine.ended(), Some(SessionEnd::AuthFailed));
        assert!(matches!(waiting.try_recv(), Ok(Outcome::NotSent(Cause::Ended(SessionEnd::AuthFailed)))));
        assert!(world.machine.refusal().unwrap().to_string().contains("wrong user or password"));
    }
}

#[test]
fn a_server_that_proves_nothing_costs_the_link_only() {
    let mut world = with_sasl(Vec::new());
    for answer in [token(&b"rspauth=0"[..]), token(&b""[..])] {
        world.attach(SESSION, T).unwrap();
        let (xid, _) = challenge(&mut world);
        assert!(world.answer(xid, Code::OK, &answer).is_err() && !is_up(&world));
        assert_eq!(world.machine.ended(), None);
        world.lose_link();
    }
}

#[test]
fn no_reply_to_credentials_stands_in_for_the_proof_of_sasl() {
    for credentials in [Vec::new(), vec![Credentials::digest("user", &"word".into())]] {
        let mut world = with_sasl(credentials);
        let (_, mut read) = world.get("/a", false);
        world.attach(SESSION, T).unwrap();
        world.written();
        for _ in 0..3 {
            world.answer(xid::AUTH, Code::OK, &Response::Empty).unwrap();
            assert!(world.written().is_empty() && !is_up(&world));
        }
        world.answer(1, Code::OK, &token(digest_md5::challenge("n"))).unwrap();
        let (xid, response) = sent_step(&mut world);
        let (_, proof) = digest_md5::verify(&response, "n", |_| Some("secret")).unwrap();
        world.answer(xid, Code::OK, &token(proof)).unwrap();
        assert!(is_up(&world) && read.try_recv().is_err());
    }
}

#[test]
fn a_step_that_waits_to_be_written_is_not_printed() {
    let mut world = with_sasl(Vec::new());
    world.attach(SESSION, T).unwrap();
    let (xid, _) = sent_step(&mut world);
    world.answer(xid, Code::OK, &token(digest_md5::challenge("n"))).unwrap();
    let printed = format!("{:?}", world.machine);
    assert!(!printed.contains("response="), "{printed}");
}

#[test]
fn a_server_without_sasl_costs_a_new_session_or_else_the_link() {
    let none = Response::Sasl { token: None };
    let mut world = with_sasl(Vec::new());
    world.attach(SESSION, T).unwrap();
    let (xid, _) = sent_step(&mut world);
    world.answer(xid, Code::OK, &none).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::AuthFailed));

    let mut world = with_sasl(Vec::new());
    world.attach(SESSION, T).unwrap();
    let (xid, proof) = challenge(&mut world);
    world.answer(xid, Code::OK, &token(proof)).unwrap();
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let (xid, _) = sent_step(&mut world);
    assert!(world.answer(xid, Code::OK, &none).is_err());
    assert_eq!(world.machine.ended(), None);
}

#[test]
fn a_link_lost_during_sasl_begins_again_with_the_first_step() {
    let mut world = with_sasl(Vec::new());
    world.attach(SESSION, T).unwrap();
    challenge(&mut world);
    assert!(world.machine.awaits_sasl());
    world.lose_link();
    assert!(!world.machine.awaits_sasl());
    world.attach(SESSION, T).unwrap();
    challenge(&mut world);
    let printed = format!("{:?}", world.machine);
    assert!(!printed.contains("secret") && !printed.contains("response="), "{printed}");
}
