use super::*;
use crate::session::Watch;
use docent_proto::Watches;
use futures_util::task::{ArcWake, waker};
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Context;

/// Checks for the event as soon as the reply is delivered.
struct Listener {
    fired: Mutex<Receiver<Fired>>,
    found: Mutex<Option<Fired>>,
}

impl ArcWake for Listener {
    fn wake_by_ref(listener: &Arc<Self>) {
        *listener.found.lock().unwrap() = listener.fired.lock().unwrap().try_recv().ok();
    }
}

#[test]
fn a_caller_that_learns_of_a_write_finds_the_event_that_preceded_its_reply() {
    let mut world = World::attached();
    let (_, fired) = world.machine.watches.register("/a", WatchKind::Data);
    let mut outcome = pin!(world.check());
    world.written();
    let listener = Arc::new(Listener { fired: Mutex::new(fired), found: Mutex::default() });
    let waker = waker(Arc::clone(&listener));
    assert!(outcome.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // Both arrive in one read.
    let mut input = BytesMut::new();
    write_frame(&mut input, |out| {
        ReplyHeader { xid: xid::NOTIFICATION, zxid: -1, code: Code::OK }.write(out);
        WatchEvent { kind: EventKind::DataChanged, path: "/a".to_owned() }.write(out);
    });
    write_frame(&mut input, |out| {
        ReplyHeader { xid: 1, zxid: 9, code: Code::OK }.write(out);
        Response::Multi(vec![MultiResult::Checked]).write(out);
    });
    world.bytes(input).unwrap();
    assert_eq!(*listener.found.lock().unwrap(), Some(Fired::Event(EventKind::DataChanged)));
}

#[test]
fn watches_are_set_again_before_anything_else_with_the_transaction_last_seen() {
    let mut world = World::attached();
    let (_, read) = world.get("/a", true);
    world.written();
    world.answer(1, Code::OK, &data()).unwrap();
    let Ok(Outcome::Reply(reply)) = { read }.try_recv() else { panic!("the read was answered") };
    let mut watch = reply.watch.unwrap();
    world.lose_link();
    let (_, _waiting) = world.get("/b", false);
    world.attach(SESSION, T).unwrap();
    let written = world.written();
    let Request::SetWatches(watches) = &written[0].request else { panic!("watches are restored first") };
    assert_eq!((watches.relative_zxid, &watches.data[..]), (9, &["/a".to_owned()][..]));
    assert_eq!(written[1].request.path(), Some("/b"));
    // A change in the meantime arrives as an event.
    world.event(EventKind::DataChanged, "/a");
    assert_eq!(watch.fired.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
}

#[test]
fn watches_are_set_again_as_of_the_first_gap_until_all_of_them_are() {
    let mut world = World::attached();
    let long = |name: &str| format!("/{name}{}", "x".repeat(40 * 1024));
    let (_, _first) = world.machine.watches.register(long("a"), WatchKind::Data);
    let (_, _second) = world.machine.watches.register(long("b"), WatchKind::Data);
    let since = |world: &mut World| {
        let written = world.written();
        written
            .iter()
            .map(|frame| match &frame.request {
                Request::SetWatches(watches) => watches.relative_zxid,
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert_eq!(since(&mut world), [7, 7]);
    // The first reply says that the server is at transaction 9; the link is lost before the second reply.
    world.answer(xid::SET_WATCHES, Code::OK, &Response::Empty).unwrap();
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert_eq!(since(&mut world), [7, 7], "changes up to 9 were not reported for the second watch");
    for _ in 0..2 {
        world.answer(xid::SET_WATCHES, Code::OK, &Response::Empty).unwrap();
    }
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert_eq!(since(&mut world), [9, 9]);
}

#[test]
fn a_link_that_is_lost_between_two_events_of_one_transaction_loses_no_change() {
    let mut world = World::attached();
    let (_, mut events) = world.machine.watches.register("/a", WatchKind::Data);
    let (_, _untold) = world.machine.watches.register("/b", WatchKind::Data);
    world.event_of(8, EventKind::DataChanged, "/a");
    world.deliver();
    assert_eq!(events.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let written = world.written();
    let Request::SetWatches(watches) = &written[0].request else { panic!("watches are restored first") };
    assert_eq!(watches.data, ["/b"]);
    assert_eq!(watches.relative_zxid, 7, "the change of the other node in transaction 8 was not reported");
}

#[test]
fn watches_that_cannot_be_set_again_cost_the_link() {
    let mut world = World::attached();
    let (_, _watch) = world.machine.watches.register("/a", WatchKind::Data);
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    world.written();
    assert!(world.answer(xid::SET_WATCHES, Code::THROTTLED, &Response::Empty).is_err());
}

#[test]
fn a_read_of_a_missing_node_leaves_no_watch_but_exists_does() {
    let mut world = World::attached();
    let (_, mut get) = world.get("/a", true);
    let (_, mut exists) = world.submit(Request::Exists { path: "/a".to_owned(), watch: true }).unwrap();
    world.written();
    world.answer(1, Code::NO_NODE, &Response::Empty).unwrap();
    world.answer(2, Code::NO_NODE, &Response::Empty).unwrap();
    let watch = |outcome| match outcome {
        Ok(Outcome::Reply(reply)) => reply.watch.is_some(),
        _ => panic!("the read was answered"),
    };
    assert!(!watch(get.try_recv()));
    assert!(watch(exists.try_recv()));
}

#[test]
fn an_unused_watch_is_removed_unless_a_read_in_flight_needs_it() {
    let mut world = World::attached();
    let (id, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    let (_, _read) = world.get("/a", true);
    world.machine.unregister(id, "/a", WatchKind::Data);
    assert_eq!(world.written().len(), 1);
    let (id, _fired) = world.machine.watches.register("/b", WatchKind::Child);
    world.machine.unregister(id, "/b", WatchKind::Child);
    assert_eq!(world.written()[0].request.op(), OpCode::RemoveWatches);
}

#[test]
fn a_reply_without_a_receiver_leaves_no_watch_to_be_dropped_under_the_lock() {
    let mut world = World::attached();
    let (_, _read) = world.get("/a", true);
    world.written();
    world.machine.drain();
    world.answer(1, Code::OK, &data()).unwrap();
}

/// So large that searching all of them for each one would exceed a test's time.
const MANY: usize = 200_000;

#[test]
fn dropping_many_watches_visits_none_of_the_waiting_requests() {
    let mut world = World::attached();
    let path = |n: usize| format!("/{n}");
    let watches: Vec<_> =
        (0..MANY).map(|n| world.machine.watches.register(path(n), WatchKind::Data)).collect();
    for (n, (id, _fired)) in watches.into_iter().enumerate() {
        world.machine.unregister(id, &path(n), WatchKind::Data);
    }
    assert_eq!(world.machine.requests.len(), MANY, "each watch is removed at the server");
}

#[test]
fn dropping_many_subscribers_of_one_node_visits_none_of_the_others() {
    let mut world = World::attached();
    let watches: Vec<_> = (0..MANY).map(|_| world.machine.watches.register("/a", WatchKind::Child)).collect();
    for (id, _fired) in watches {
        world.machine.unregister(id, "/a", WatchKind::Child);
    }
    assert_eq!(world.machine.requests.len(), 1, "only the last subscriber's watch is removed at the server");
}

#[test]
fn a_read_in_flight_needs_its_watch_until_it_is_answered_withdrawn_late_or_lost() {
    fn answered(world: &mut World, xid: i32) {
        world.written();
        world.answer(xid, Code::NO_NODE, &Response::Empty).unwrap();
    }
    /// Ends the read in the world.
    type End = fn(&mut World, u64);
    let ends: [(&str, End); 4] = [
        ("answered", |world, _| answered(world, 1)),
        ("withdrawn", |world, id| assert!(world.machine.requests.withdraw(id))),
        ("late", |world, _| world.machine.expire(Instant::now() + Duration::from_secs(2))),
        ("lost", |world, _| {
            world.written();
            world.lose_link();
            world.attach(SESSION, T).unwrap();
        }),
    ];
    for (how, end) in ends {
        let mut world = World::attached();
        let read = Request::GetData { path: "/a".to_owned(), watch: true };
        let deadline = Some(Instant::now() + Duration::from_secs(1));
        let (read, _outcome) = world.machine.submit(read, Lane::Call, deadline).unwrap();
        for wanted in [true, false] {
            let (id, _fired) = world.machine.watches.register("/a", WatchKind::Exist);
            let before = world.machine.requests.len();
            world.machine.unregister(id, "/a", WatchKind::Exist);
            assert_eq!(world.machine.requests.len() == before, wanted, "{how}");
            if wanted {
                end(&mut world, read);
            }
        }
    }
}

/// Requests watches on `/a` and `/b` as of transaction 8.
fn set_two(world: &mut World) -> (u64, Receiver<Outcome>) {
    let data = vec!["/a".to_owned(), "/b".to_owned()];
    world.submit(Request::SetWatches(Watches { relative_zxid: 8, data, ..Watches::default() })).unwrap()
}

/// Returns the watches of a request that was answered.
fn watches_of(mut outcome: Receiver<Outcome>) -> Vec<Watch> {
    match outcome.try_recv() {
        Ok(Outcome::Reply(reply)) => reply.watches,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_request_sets_several_watches_on_a_link_that_is_up() {
    let mut world = World::attached();
    let (_, outcome) = set_two(&mut world);
    let written = world.written();
    let Request::SetWatches(sent) = &written[0].request else { panic!("{:?}", written[0].request) };
    assert_eq!((sent.relative_zxid, &sent.data[..]), (8, &["/a".to_owned(), "/b".to_owned()][..]));
    // Earlier changes are reported before the reply.
    world.event(EventKind::Deleted, "/a");
    world.answer(1, Code::OK, &Response::Empty).unwrap();
    let mut watches = watches_of(outcome);
    assert_eq!(watches[0].fired.try_recv(), Ok(Fired::Event(EventKind::Deleted)));
    assert!(watches[1].fired.try_recv().is_err());
    world.event(EventKind::DataChanged, "/b");
    assert_eq!(watches[1].fired.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
}

#[test]
fn watches_set_by_one_request_are_restored_like_other_watches() {
    let mut world = World::attached();
    let (_, outcome) = set_two(&mut world);
    world.written();
    world.answer(1, Code::OK, &Response::Empty).unwrap();
    let mut watches = watches_of(outcome);
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let Request::SetWatches(restored) = &world.written()[0].request else { panic!("watches come first") };
    assert_eq!((restored.relative_zxid, restored.data.len()), (9, 2));
    world.event(EventKind::DataChanged, "/a");
    assert_eq!(watches[0].fired.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
}

#[test]
fn watches_whose_request_is_lost_with_its_link_are_not_restored() {
    let mut world = World::attached();
    let (_, mut outcome) = set_two(&mut world);
    world.written();
    world.lose_link();
    assert!(matches!(outcome.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
    world.attach(SESSION, T).unwrap();
    // With watches as of 9, a change of transaction 9 would never be reported.
    assert!(world.written().is_empty());
    assert_eq!(world.machine.watches.len(), 0);
    // When requested again, they are set as of the transaction that the caller has seen.
    let (_, outcome) = set_two(&mut world);
    assert_eq!(world.written().len(), 1);
    world.answer(2, Code::OK, &Response::Empty).unwrap();
    assert_eq!(watches_of(outcome).len(), 2);
}

#[test]
fn watches_that_are_no_longer_used_are_removed() {
    for refused in [false, true] {
        let mut world = World::attached();
        let (_, mut outcome) = set_two(&mut world);
        world.written();
        let code = if refused { Code::THROTTLED } else { Code::OK };
        if !refused {
            // Ends the calls, including those that wait for the watches.
            world.machine.requests.end(
                SessionEnd::Closed,
                Lane::is_call,
                &mut world.machine.deliveries.finished,
            );
        }
        world.answer(1, code, &Response::Empty).unwrap();
        assert_eq!(world.machine.watches.len(), 0);
        let removed: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
        assert_eq!(removed, [OpCode::RemoveWatches, OpCode::RemoveWatches]);
        assert!(outcome.try_recv().is_ok());
    }
}

#[test]
fn a_watch_set_by_a_request_in_flight_is_not_removed_after_it() {
    let mut world = World::attached();
    let (id, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    let (set, _outcome) = set_two(&mut world);
    world.machine.unregister(id, "/a", WatchKind::Data);
    assert_eq!(world.machine.requests.len(), 1);
    // A withdrawn request needs no watches.
    assert!(world.machine.requests.withdraw(set));
    let (id, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    world.machine.unregister(id, "/a", WatchKind::Data);
    assert_eq!(world.written()[0].request.op(), OpCode::RemoveWatches);
}
