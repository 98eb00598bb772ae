use super::*;

#[test]
fn after_a_long_pause_nothing_is_sent_before_the_session_is_re_attached() {
    let longest = T / 3;
    let much_longer = T * 7 / 10;
    for (pause, stale) in [(longest, false), (longest + Duration::from_millis(1), true), (much_longer, true)]
    {
        let mut world = World::attached();
        world.pass(pause);
        let _check = world.check();
        world.written();
        assert_eq!(world.machine.requests.in_flight.is_empty(), stale, "{pause:?}");
        let rings_at_once = world.machine.next_deadline().is_some_and(|at| at <= world.now);
        assert_eq!(rings_at_once, stale, "{pause:?}");
        let ticked = world.machine.tick(world.now);
        assert_eq!(matches!(ticked, Err(LinkError::Paused)), stale, "{pause:?}: {ticked:?}");
    }
}

#[test]
fn a_write_after_a_pause_proves_no_more_than_the_servers_received_before_it() {
    let mut world = World::attached();
    let attached = world.now;
    world.pass(T / 3);
    let _check = world.check();
    world.written();
    world.answer(1, Code::OK, &Response::Multi(vec![])).unwrap();
    let shown = world.lease.deadline().since(attached);
    assert!(shown < T, "until {shown:?} after the leader last learned of the session");
}

#[test]
fn after_a_pause_requests_in_flight_are_answered_before_the_link_is_abandoned() {
    let mut world = World::attached();
    let checks = [world.check(), world.check()];
    world.written();
    world.pass(T / 2);
    world.answer(1, Code::OK, &Response::Multi(vec![])).unwrap();
    assert!(world.machine.tick(world.now).is_ok());
    world.answer(2, Code::OK, &Response::Multi(vec![])).unwrap();
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Paused)));
    for mut check in checks {
        assert!(matches!(check.try_recv(), Ok(Outcome::Reply(_))));
    }
}

#[test]
fn a_request_delayed_by_a_pause_is_sent_over_the_next_link() {
    let mut world = World::attached();
    world.pass(T);
    let check = world.check();
    world.written();
    world.machine.disconnected(world.now);
    world.attach(SESSION, T).unwrap();
    let sent = world.now;
    world.written();
    world.answer(1, Code::OK, &Response::Multi(vec![])).unwrap();
    assert_eq!(world.lease.deadline(), sent + T * 2 / 3);
    drop(check);
}

#[test]
fn a_process_that_was_frozen_gets_the_time_to_re_attach() {
    let mut world = World::attached();
    world.pass(T * 10);
    world.lose_link();
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), None);
    world.pass(T / 3);
    world.machine.tick(world.now).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Abandoned));
}
