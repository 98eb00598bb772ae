use super::*;

#[test]
fn requests_keep_the_order_of_their_calls_and_wait_for_the_link() {
    let mut world = World::new();
    let (_, _first) = world.get("/a", false);
    let (_, _second) = world.get("/b", false);
    assert!(world.written().is_empty());
    world.attach(SESSION, T).unwrap();
    let paths: Vec<_> = world.written().into_iter().map(|f| f.request.path().map(str::to_owned)).collect();
    assert_eq!(paths, [Some("/a".to_owned()), Some("/b".to_owned())]);
}

#[test]
fn a_request_withdrawn_before_it_was_written_is_never_sent() {
    let mut world = World::attached();
    let (first, _a) = world.get("/a", false);
    let (second, _b) = world.get("/b", false);
    assert!(world.machine.requests.withdraw(first));
    assert_eq!(world.written().len(), 1);
    assert!(!world.machine.requests.withdraw(second), "the request was written");
}

#[test]
fn written_requests_are_unknown_after_a_lost_link_and_the_rest_is_sent_on_the_next() {
    let mut world = World::attached();
    let (_, mut written) = world.get("/a", false);
    world.written();
    let (_, mut waiting) = world.get("/b", false);
    world.lose_link();
    assert!(matches!(written.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
    assert!(waiting.try_recv().is_err());
    world.attach(SESSION, T).unwrap();
    assert_eq!(world.written()[0].request.path(), Some("/b"));
}

#[test]
fn a_delete_of_an_own_node_keeps_its_position_across_a_lost_link() {
    let mut world = World::attached();
    let delete = Request::Delete { path: "/ours".to_owned(), version: -1 };
    let (_, mut deleted) = world.machine.submit(delete, Lane::Cleanup, None).unwrap();
    world.written();
    world.lose_link();
    assert!(deleted.try_recv().is_err());
    let (_, _later) = world.get("/line", false);
    world.attach(SESSION, T).unwrap();
    let ops: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
    assert_eq!(ops, [OpCode::Delete, OpCode::GetData]);
}

#[test]
fn queues_are_bounded_but_not_for_cleanups() {
    let mut world = World::new();
    let waiting: Vec<_> = (0..3).map(|_| world.get("/a", false)).collect();
    assert_eq!(world.submit(Request::Ping).unwrap_err(), Cause::QueueFull);
    let delete = Request::Delete { path: "/a".to_owned(), version: -1 };
    assert!(world.machine.submit(delete, Lane::Cleanup, None).is_ok());
    drop(waiting);
}

#[test]
fn a_request_above_the_servers_limit_is_refused_and_one_at_the_limit_is_not() {
    let mut world = World::attached();
    let limit = 64 * 1024;
    let set =
        |size| Request::SetData { path: "/a".to_owned(), data: Some(vec![0; size].into()), version: -1 };
    let overhead = 8 + 4 + 2 + 4 + 4;
    assert!(world.submit(set(limit - overhead)).is_ok());
    let too_large = world.submit(set(limit - overhead + 1)).unwrap_err();
    assert_eq!(too_large, Cause::TooLarge { size: limit + 1, limit });
}

/// Submits a write of this node that depends on a watch.
fn tied(world: &mut World, path: &str) -> Receiver<Outcome> {
    let set = MultiOp::SetData { path: path.to_owned(), data: None, version: 1 };
    let losses = world.machine.link_state().losses;
    world.machine.submit_on(Request::Multi(vec![set]), Lane::Call, losses, None).unwrap().1
}

#[test]
fn a_write_that_relies_on_a_watch_is_not_sent_once_the_node_was_changed() {
    let mut world = World::attached();
    let (mut own, mut other) = (tied(&mut world, "/ours"), tied(&mut world, "/other"));
    world.event(EventKind::Deleted, "/ours");
    assert!(matches!(own.try_recv(), Ok(Outcome::NotSent(Cause::LinkLost))));
    assert_eq!(world.written().len(), 1);
    world.event(EventKind::Deleted, "/other");
    assert!(other.try_recv().is_err(), "the write was sent before the event");
}

#[test]
fn a_write_that_relies_on_a_watch_waits_until_all_received_bytes_are_processed() {
    let mut world = World::attached();
    let (_, _first) = world.get("/a", false);
    let _tied = tied(&mut world, "/ours");
    let (_, _behind) = world.get("/b", false);
    assert!(world.machine.write(world.now, false, &mut world.output), "the tied request is still waiting");
    assert_eq!(world.frames().len(), 1);
    assert_eq!(world.written().len(), 2);
}
