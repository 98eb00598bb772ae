use super::*;

/// Returns an attached machine, and the time from which its requests' deadlines are counted.
fn attached() -> (World, Instant) {
    (World::attached(), Instant::now())
}

fn set_until(world: &mut World, path: &str, deadline: Instant) -> Receiver<Outcome> {
    let set = Request::SetData { path: path.to_owned(), data: None, version: -1 };
    world.machine.submit(set, Lane::Call, Some(deadline)).unwrap().1
}

fn expire(world: &mut World, now: Instant) {
    world.machine.expire(now);
    world.deliver();
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_request_that_waits_past_its_deadline_is_never_sent() {
    let (mut world, start) = attached();
    let mut late = set_until(&mut world, "/late", start + SECOND);
    let mut in_time = set_until(&mut world, "/in-time", start + SECOND * 2);
    expire(&mut world, start + SECOND);
    assert!(matches!(late.try_recv(), Ok(Outcome::NotSent(Cause::Deadline))));
    assert!(in_time.try_recv().is_err());
    let written = world.written();
    assert_eq!(written.len(), 1);
    assert_eq!(written[0].request.path(), Some("/in-time"));
}

#[test]
fn a_request_that_was_written_is_unknown_at_its_deadline_and_keeps_its_place_for_the_reply() {
    let (mut world, start) = attached();
    let mut late = set_until(&mut world, "/late", start + SECOND);
    let (_, mut next) = world.get("/next", false);
    let sent = world.now;
    world.written();
    expire(&mut world, start + SECOND);
    assert!(matches!(late.try_recv(), Ok(Outcome::Unknown(Cause::Deadline))));
    world.answer(1, Code::OK, &Response::Stat(Stat::default())).unwrap();
    assert_eq!(world.lease.deadline(), sent + T * 2 / 3, "the write was acknowledged nevertheless");
    world.answer(2, Code::OK, &data()).unwrap();
    assert!(matches!(next.try_recv(), Ok(Outcome::Reply(_))));
}

#[test]
fn a_request_that_was_unknown_at_its_deadline_is_not_sent_again() {
    let (mut world, start) = attached();
    let _late = set_until(&mut world, "/late", start + SECOND);
    world.written();
    expire(&mut world, start + SECOND);
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert!(world.written().is_empty());
}

#[test]
fn the_next_expiry_is_no_later_than_any_deadline() {
    let (mut world, start) = attached();
    assert_eq!(world.machine.requests.next_expiry, None);
    let _written = set_until(&mut world, "/a", start + SECOND * 3);
    world.written();
    assert_eq!(world.machine.requests.next_expiry, Some(start + SECOND * 3));
    let _waiting = set_until(&mut world, "/b", start + SECOND * 2);
    assert_eq!(world.machine.requests.next_expiry, Some(start + SECOND * 2));
    expire(&mut world, start + SECOND * 2);
    assert_eq!(world.machine.requests.next_expiry, Some(start + SECOND * 3));
    expire(&mut world, start + SECOND * 3);
    assert_eq!(world.machine.requests.next_expiry, None);
}
