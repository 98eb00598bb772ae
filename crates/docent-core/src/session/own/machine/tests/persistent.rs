use super::*;
use crate::session::PersistentSignal;
use docent_proto::WatchMode;
use tokio::sync::mpsc::UnboundedReceiver;

type Signals = UnboundedReceiver<PersistentSignal>;

fn watch(world: &mut World, path: &str) -> (u64, Signals) {
    world.machine.watch_below(path).unwrap()
}

fn ops(world: &mut World) -> Vec<OpCode> {
    world.written().iter().map(|frame| frame.request.op()).collect()
}

/// Returns a world with a persistent watch on `/f`.
fn watched() -> (World, u64, Signals) {
    let mut world = World::attached();
    let (id, signals) = watch(&mut world, "/f");
    let written = world.written();
    let mode = WatchMode::PersistentRecursive;
    assert_eq!(written[0].request, Request::AddWatch { path: "/f".to_owned(), mode });
    world.answer(1, Code::OK, &Response::WatchAdded(Code::OK)).unwrap();
    (world, id, signals)
}

fn event(kind: EventKind, path: &str) -> PersistentSignal {
    PersistentSignal::Event(kind, path.into())
}

#[test]
fn events_at_and_below_the_path_are_reported_in_order() {
    let (mut world, _, mut signals) = watched();
    world.event(EventKind::Created, "/f");
    world.event(EventKind::Created, "/f/a/b");
    world.event(EventKind::Deleted, "/fx");
    assert_eq!(signals.try_recv(), Ok(event(EventKind::Created, "/f")));
    assert_eq!(signals.try_recv(), Ok(event(EventKind::Created, "/f/a/b")));
    assert!(signals.try_recv().is_err());
}

#[test]
fn it_serves_one_shot_data_watches_on_its_path() {
    let (mut world, _, _signals) = watched();
    let (_, mut get) = world.get("/f", true);
    let names = Request::GetChildren2 { path: "/f".to_owned(), watch: true };
    let (_, mut names) = world.submit(names).unwrap();
    let (_, mut below) = world.get("/f/a", true);
    let is_watch = |frame: &RequestFrame| match frame.request {
        Request::GetData { watch, .. } | Request::GetChildren2 { watch, .. } => watch,
        _ => panic!("{frame:?}"),
    };
    assert_eq!(world.written().iter().map(is_watch).collect::<Vec<_>>(), [false, true, true]);
    world.answer(2, Code::OK, &data()).unwrap();
    let children = Response::Children { names: Vec::new(), stat: Some(Stat::default()) };
    world.answer(3, Code::OK, &children).unwrap();
    world.answer(4, Code::OK, &data()).unwrap();
    let [mut changed, mut names, mut below] = [&mut get, &mut names, &mut below].map(|outcome| {
        let Ok(Outcome::Reply(reply)) = outcome.try_recv() else { panic!("the read was answered") };
        reply.watch.expect("the persistent watch serves the read")
    });
    world.event(EventKind::Created, "/f/b");
    assert!(names.fired.try_recv().is_err(), "the server reports this change by a separate event");
    world.event(EventKind::ChildrenChanged, "/f");
    assert_eq!(names.fired.try_recv(), Ok(Fired::Event(EventKind::ChildrenChanged)));
    assert!(changed.fired.try_recv().is_err());
    world.event(EventKind::DataChanged, "/f");
    assert_eq!(changed.fired.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
    // The server reports both watches by one event.
    world.event(EventKind::Deleted, "/f/a");
    assert_eq!(below.fired.try_recv(), Ok(Fired::Event(EventKind::Deleted)));
}

#[test]
fn it_is_removed_with_its_last_user() {
    let (mut world, id, _signals) = watched();
    let (_, mut get) = world.get("/f", true);
    world.written();
    // A read in flight needs the watch, and then the subscriber who waits for a change.
    world.machine.unregister(id, "/f", WatchKind::Persistent);
    assert!(ops(&mut world).is_empty());
    world.answer(2, Code::OK, &data()).unwrap();
    let Ok(Outcome::Reply(reply)) = get.try_recv() else { panic!("the read was answered") };
    world.event(EventKind::Created, "/f/b");
    assert!(ops(&mut world).is_empty());
    world.event(EventKind::DataChanged, "/f");
    let written = world.written();
    let kind = docent_proto::WatchKind::Any;
    assert_eq!(written[0].request, Request::RemoveWatches { path: "/f".to_owned(), kind });
    drop(reply);
    // From now on a one-shot watch on the path is set at the server.
    let (_, _again) = world.get("/f", true);
    assert!(matches!(world.written()[0].request, Request::GetData { watch: true, .. }));
}

#[test]
fn the_end_of_another_watch_on_its_path_removes_nothing() {
    let (mut world, _, mut signals) = watched();
    let (id, _fired) = world.machine.watches.register("/f", WatchKind::Data);
    world.machine.unregister(id, "/f", WatchKind::Data);
    assert!(ops(&mut world).is_empty());
    // At older servers, a one-shot watch that is set now replaces the persistent watch, which is therefore
    // restored.
    let data = vec!["/f".to_owned()];
    let watches = docent_proto::Watches { relative_zxid: 8, data, ..docent_proto::Watches::default() };
    let _set = world.submit(Request::SetWatches(watches)).unwrap();
    assert_eq!(ops(&mut world), [OpCode::SetWatches, OpCode::AddWatch]);
    // Changes below the path in the meantime are not reported to the subscriber.
    world.deliver();
    assert_eq!(signals.try_recv(), Ok(PersistentSignal::Withdrawn));
}

#[test]
fn it_is_restored_on_a_new_link_after_the_one_shot_watches() {
    let (mut world, _, mut signals) = watched();
    let (_, _fired) = world.machine.watches.register("/f", WatchKind::Data);
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let written = world.written();
    assert_eq!(written[0].request.op(), OpCode::SetWatches);
    let Request::SetWatches2 { recursive, .. } = &written[1].request else { panic!("{:?}", written[1]) };
    assert_eq!((written[1].xid, &recursive[..]), (xid::SET_WATCHES, &["/f".to_owned()][..]));
    for _ in 0..2 {
        world.answer(xid::SET_WATCHES, Code::OK, &Response::Empty).unwrap();
    }
    world.event(EventKind::Created, "/f/a");
    assert_eq!(signals.try_recv(), Ok(event(EventKind::Created, "/f/a")));
}

#[test]
fn a_server_without_persistent_watches_is_reported_and_not_asked_again() {
    let mut world = World::attached();
    let (_, mut signals) = watch(&mut world, "/f");
    let (_, mut served) = world.get("/f", true);
    world.written();
    world.answer(1, Code::UNIMPLEMENTED, &Response::Empty).unwrap();
    assert_eq!(signals.try_recv(), Ok(PersistentSignal::Withdrawn));
    let unlogged = || world.machine.settings.abilities.take_unlogged();
    assert_eq!((unlogged(), unlogged()), (vec![Ability::PersistentWatches], Vec::new()));
    // The read was to be served by the watch that the server refused.
    world.answer(2, Code::OK, &data()).unwrap();
    assert!(matches!(served.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
    assert!(world.machine.watch_below("/f").is_none());
    world.lose_link();
    // The next link may be to another server, which is known once there is a link.
    let (_, mut signals) = watch(&mut world, "/f");
    world.machine.dialled(None, false, world.now);
    world.attach(SESSION, T).unwrap();
    assert_eq!(signals.try_recv(), Ok(PersistentSignal::Withdrawn));
    assert!(ops(&mut world).is_empty());
}

#[test]
fn a_server_that_closes_the_link_on_each_persistent_watch_is_tried_twice() {
    let mut world = World::attached();
    let (_, mut signals) = watch(&mut world, "/f");
    for asked in [OpCode::AddWatch, OpCode::SetWatches2] {
        assert_eq!(ops(&mut world), [asked]);
        world.lose_link();
        world.machine.dialled(None, false, world.now);
        world.attach(SESSION, T).unwrap();
    }
    assert!(ops(&mut world).is_empty());
    assert_eq!(signals.try_recv(), Ok(PersistentSignal::Withdrawn));
}

#[test]
fn it_ends_with_the_session() {
    let (mut world, _, mut signals) = watched();
    world.machine.end(SessionEnd::Expired);
    world.deliver();
    assert_eq!(signals.try_recv(), Ok(PersistentSignal::Ended(SessionEnd::Expired)));
    assert!(signals.try_recv().is_err() && world.machine.watch_below("/f").is_none());
}

#[test]
fn an_event_with_a_transaction_id_is_reported_immediately_and_excludes_older_servers() {
    let (mut world, _, mut signals) = watched();
    world.event_of(100, EventKind::Deleted, "/f/x");
    assert_eq!(signals.try_recv(), Ok(event(EventKind::Deleted, "/f/x")));
    assert!(world.written().is_empty());
    assert_eq!(world.machine.seen_zxid, 100, "the next session starts from this transaction, too");
    let (_, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    world.lose_link();
    assert_eq!(world.attach(SESSION, T).unwrap().last_zxid_seen, 100);
    let Request::SetWatches(watches) = &world.written()[0].request else { panic!("watches come first") };
    assert_eq!(watches.relative_zxid, 9, "more events of transaction 100 may have been in flight");
}

/// Returns the request that restores watches on children behind a persistent watch.
fn restored_children(world: &mut World, behind: OpCode) -> docent_proto::Watches {
    let mut written = world.written();
    assert_eq!(written.len(), 2, "{written:?}");
    assert_eq!((written[0].request.op(), written[1].xid), (behind, xid::SET_WATCHES));
    let Request::SetWatches(watches) = written.remove(1).request else { panic!("{written:?}") };
    assert_eq!((&watches.data[..], &watches.exist[..]), (&[][..], &[][..]));
    watches
}

#[test]
fn a_children_watch_on_its_path_is_restored_after_it() {
    let mut world = World::attached();
    let (_, mut fired) = world.machine.watches.register("/f", WatchKind::Child);
    let (_, _signals) = watch(&mut world, "/f");
    let watches = restored_children(&mut world, OpCode::AddWatch);
    assert_eq!((watches.relative_zxid, &watches.child[..]), (7, &["/f".to_owned()][..]));
    world.answer(1, Code::OK, &Response::WatchAdded(Code::OK)).unwrap();
    // Until the request is acknowledged, changes of the children may not be reported.
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let watches = restored_children(&mut world, OpCode::SetWatches2);
    assert_eq!((watches.relative_zxid, &watches.child[..]), (7, &["/f".to_owned()][..]));
    for _ in 0..2 {
        world.answer(xid::SET_WATCHES, Code::OK, &Response::Empty).unwrap();
    }
    world.event(EventKind::ChildrenChanged, "/f");
    assert_eq!(fired.try_recv(), Ok(Fired::Event(EventKind::ChildrenChanged)));
}

#[test]
fn a_children_read_in_flight_on_its_path_keeps_its_watch() {
    let mut world = World::attached();
    let names = Request::GetChildren2 { path: "/f".to_owned(), watch: true };
    let (_, _names) = world.submit(names).unwrap();
    world.written();
    let (_, _signals) = watch(&mut world, "/f");
    assert_eq!(restored_children(&mut world, OpCode::AddWatch).child, ["/f"]);
}

/// Connects the next link, to the same server.
fn next_link(world: &mut World) {
    world.lose_link();
    world.machine.dialled(None, false, world.now);
    world.attach(SESSION, T).unwrap();
}

#[test]
fn a_refusal_that_arrives_before_earlier_replies_counts() {
    let mut world = World::attached();
    let (_, _read) = world.get("/a", false);
    let (_, mut signals) = watch(&mut world, "/f");
    world.written();
    assert!(world.answer(2, Code::UNIMPLEMENTED, &Response::Empty).is_err());
    next_link(&mut world);
    assert!(ops(&mut world).is_empty());
    assert_eq!(signals.try_recv(), Ok(PersistentSignal::Withdrawn));
}

#[test]
fn a_request_refused_before_earlier_replies_learns_of_its_refusal() {
    let mut world = World::attached();
    let (_, mut read) = world.get("/a", false);
    let reads = Request::MultiRead(vec![MultiOp::GetData { path: "/b".to_owned() }]);
    let (_, mut several) = world.submit(reads).unwrap();
    world.written();
    assert!(world.answer(2, Code::UNIMPLEMENTED, &Response::Empty).is_err());
    world.lose_link();
    let Ok(Outcome::Reply(reply)) = several.try_recv() else { panic!("the request was refused") };
    assert_eq!(reply.result.unwrap_err(), Code::UNIMPLEMENTED);
    assert!(matches!(read.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
}

#[test]
fn a_refusal_that_arrives_before_the_other_watches_are_restored_counts() {
    let (mut world, _, mut signals) = watched();
    let (_, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    next_link(&mut world);
    assert_eq!(ops(&mut world), [OpCode::SetWatches, OpCode::SetWatches2]);
    assert!(world.answer(xid::SET_WATCHES, Code::UNIMPLEMENTED, &Response::Empty).is_err());
    next_link(&mut world);
    assert_eq!(ops(&mut world), [OpCode::SetWatches]);
    assert_eq!(signals.try_recv(), Ok(PersistentSignal::Withdrawn));
}
