use super::*;

#[test]
fn an_acknowledged_write_renews_the_lease_from_its_send_time_and_reads_do_not() {
    let mut world = World::attached();
    let sent = world.now;
    let _read = world.get("/a", false);
    let _check = world.check();
    world.written();
    world.pass(Duration::from_secs(1));
    world.answer(1, Code::OK, &data()).unwrap();
    assert_eq!(world.lease.mark(world.now), None);
    world.answer(2, Code::OK, &Response::Multi(vec![])).unwrap();
    assert_eq!(world.lease.deadline(), sent + T * 2 / 3);
}

/// Sends a ping when it is due.
fn ping(world: &mut World) {
    world.pass(T / 6);
    assert_eq!(world.written()[0].xid, xid::PING);
}

#[test]
fn a_write_after_delayed_replies_proves_no_more_than_the_servers_certainly_received() {
    let mut world = World::attached();
    let attached = world.now;
    ping(&mut world);
    ping(&mut world);
    world.pass(T / 6 - TICK / 10);
    // Everything in flight arrives together. The leader may not know of it when the write arrives.
    world.answer(xid::PING, Code::OK, &Response::Empty).unwrap();
    world.answer(xid::PING, Code::OK, &Response::Empty).unwrap();
    let _check = world.check();
    world.written();
    world.answer(1, Code::OK, &Response::Multi(vec![])).unwrap();
    let shown = world.lease.deadline().since(attached);
    assert!(shown < T, "until {shown:?} after the leader last learned of the session");
}

#[test]
fn an_answer_counts_once_it_could_have_been_relayed() {
    let mut world = World::attached();
    for _ in 0..5 {
        ping(&mut world);
        world.answer(xid::PING, Code::OK, &Response::Empty).unwrap();
    }
    world.pass(T / 6 - Duration::from_millis(1));
    let (sent, _check) = (world.now, world.check());
    world.written();
    world.answer(1, Code::OK, &Response::Multi(vec![])).unwrap();
    assert_eq!(world.lease.deadline(), sent + T * 2 / 3, "a client that pings in time has the whole lease");
}

#[test]
fn a_refusal_by_the_quorum_renews_the_lease_and_one_by_a_single_server_does_not() {
    for (code, renews) in [
        (Code::NO_NODE, true),
        (Code::BAD_VERSION, true),
        (Code::NO_AUTH, true),
        (Code::THROTTLED, false),
        (Code::UNIMPLEMENTED, false),
        (Code(-9_999), false),
    ] {
        let mut world = World::attached();
        let _check = world.check();
        world.written();
        world.answer(1, code, &Response::Empty).unwrap();
        assert_eq!(world.lease.mark(world.now).is_some(), renews, "{code:?}");
    }
}

#[test]
fn a_session_that_moved_costs_the_link_and_renews_nothing() {
    let mut world = World::attached();
    let _check = world.check();
    world.written();
    assert!(world.answer(1, Code::SESSION_MOVED, &Response::Empty).is_err());
    assert_eq!(world.lease.mark(world.now), None);
    assert_eq!(world.machine.ended(), None);
}

#[test]
fn a_multi_that_reports_an_expired_session_ends_it_and_renews_nothing() {
    let mut world = World::attached();
    let mut check = world.check();
    world.written();
    let failed = Response::Multi(vec![MultiResult::Failed(Code::SESSION_EXPIRED)]);
    world.answer(1, Code::OK, &failed).unwrap();
    assert_eq!(world.lease.mark(world.now), None);
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
    assert!(
        matches!(check.try_recv(), Ok(Outcome::Reply(reply)) if reply.result == Err(Code::SESSION_EXPIRED))
    );
}
