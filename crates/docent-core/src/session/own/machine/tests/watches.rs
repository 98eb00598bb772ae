use super::*;
use crate::session::Watch;
use docent_proto::Watches;
use futures_util::task::{ArcWake, waker};
use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::Context;

/// Looks for the event as soon as the reply is told.
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
fn whoever_hears_of_a_write_finds_the_event_that_came_before_its_reply() {
    let mut world = World::attached();
    let (_, fired) = world.machine.watches.register("/a", WatchKind::Data);
    let mut outcome = pin!(world.check());
    world.written();
    let listener = Arc::new(Listener { fired: Mutex::new(fired), found: Mutex::default() });
    let waker = waker(Arc::clone(&listener));
    assert!(outcome.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    // Both come in one read.
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
    let Ok(Outcome::Reply(reply)) = { read }.try_recv() else { panic!("it was answered") };
    let mut watch = reply.watch.unwrap();
    world.lose_link();
    let (_, _waiting) = world.get("/b", false);
    world.attach(SESSION, T).unwrap();
    let written = world.written();
    let Request::SetWatches(watches) = &written[0].request else { panic!("watches come first") };
    assert_eq!((watches.relative_zxid, &watches.data[..]), (9, &["/a".to_owned()][..]));
    assert_eq!(written[1].request.path(), Some("/b"));
    // A change meanwhile comes as an event.
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
    // The first answer says that the server is at transaction 9; the link is lost before the second.
    world.answer(xid::SET_WATCHES, Code::OK, &Response::Empty).unwrap();
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    assert_eq!(since(&mut world), [7, 7], "changes up to 9 were not seen for the second");
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
    let (_, mut told) = world.machine.watches.register("/a", WatchKind::Data);
    let (_, _untold) = world.machine.watches.register("/b", WatchKind::Data);
    world.event_of(8, EventKind::DataChanged, "/a");
    world.deliver();
    assert_eq!(told.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let written = world.written();
    let Request::SetWatches(watches) = &written[0].request else { panic!("watches come first") };
    assert_eq!(watches.data, ["/b"]);
    assert_eq!(watches.relative_zxid, 7, "what transaction 8 did to the other node was not told");
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
        _ => panic!("it was answered"),
    };
    assert!(!watch(get.try_recv()));
    assert!(watch(exists.try_recv()));
}

#[test]
fn a_watch_nobody_waits_for_is_removed_unless_a_read_on_the_way_wants_it() {
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
fn a_reply_nobody_waits_for_leaves_no_watch_to_be_dropped_under_the_lock() {
    let mut world = World::attached();
    let (_, _read) = world.get("/a", true);
    world.written();
    world.machine.drain();
    world.answer(1, Code::OK, &data()).unwrap();
}

/// So many that looking through all of them for each would not end in a test's time.
const MANY: usize = 200_000;

#[test]
fn dropping_many_watches_looks_at_none_of_the_requests_that_wait() {
    let mut world = World::attached();
    let path = |n: usize| format!("/{n}");
    let watches: Vec<_> =
        (0..MANY).map(|n| world.machine.watches.register(path(n), WatchKind::Data)).collect();
    for (n, (id, _fired)) in watches.into_iter().enumerate() {
        world.machine.unregister(id, &path(n), WatchKind::Data);
    }
    assert_eq!(world.machine.requests.len(), MANY, "each is removed at the server");
}

#[test]
fn dropping_many_subscribers_of_one_node_looks_at_none_of_the_others() {
    let mut world = World::attached();
    let watches: Vec<_> = (0..MANY).map(|_| world.machine.watches.register("/a", WatchKind::Child)).collect();
    for (id, _fired) in watches {
        world.machine.unregister(id, "/a", WatchKind::Child);
    }
    assert_eq!(world.machine.requests.len(), 1, "the last one's is removed at the server");
}

#[test]
fn a_read_on_the_way_wants_its_watch_until_it_is_answered_withdrawn_late_or_lost() {
    fn answered(world: &mut World, xid: i32) {
        world.written();
        world.answer(xid, Code::NO_NODE, &Response::Empty).unwrap();
    }
    /// End of the read, as the world brings it about.
    type End = fn(&mut World, u64);
    let ends: [(&str, End); 4] = [
        ("answered", |world, _| answered(world, 1)),
        ("withdrawn", |world, id| assert!(world.machine.withdraw(id))),
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

/// Asks for watches on `/a` and `/b` as of transaction 8.
fn set_two(world: &mut World) -> (u64, Receiver<Outcome>) {
    let data = vec!["/a".to_owned(), "/b".to_owned()];
    world.submit(Request::SetWatches(Watches { relative_zxid: 8, data, ..Watches::default() })).unwrap()
}

/// The watches of a request that was answered.
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
    // What had happened by then is told before the answer.
    world.event(EventKind::Deleted, "/a");
    world.answer(1, Code::OK, &Response::Empty).unwrap();
    let mut watches = watches_of(outcome);
    assert_eq!(watches[0].fired.try_recv(), Ok(Fired::Event(EventKind::Deleted)));
    assert!(watches[1].fired.try_recv().is_err());
    world.event(EventKind::DataChanged, "/b");
    assert_eq!(watches[1].fired.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
}

#[test]
fn watches_that_one_request_has_set_are_set_again_as_all_others_are() {
    let mut world = World::attached();
    let (_, outcome) = set_two(&mut world);
    world.written();
    world.answer(1, Code::OK, &Response::Empty).unwrap();
    let mut watches = watches_of(outcome);
    world.lose_link();
    world.attach(SESSION, T).unwrap();
    let Request::SetWatches(again) = &world.written()[0].request else { panic!("watches come first") };
    assert_eq!((again.relative_zxid, again.data.len()), (9, 2));
    world.event(EventKind::DataChanged, "/a");
    assert_eq!(watches[0].fired.try_recv(), Ok(Fired::Event(EventKind::DataChanged)));
}

#[test]
fn watches_whose_request_is_lost_with_its_link_are_not_set_again_behind_its_back() {
    let mut world = World::attached();
    let (_, mut outcome) = set_two(&mut world);
    world.written();
    world.lose_link();
    assert!(matches!(outcome.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
    world.attach(SESSION, T).unwrap();
    // As of 9 a change of transaction 9 would never be told.
    assert!(world.written().is_empty());
    assert_eq!(world.machine.watches.len(), 0);
    // Asked for again they are set as of the transaction that the caller has seen.
    let (_, outcome) = set_two(&mut world);
    assert_eq!(world.written().len(), 1);
    world.answer(2, Code::OK, &Response::Empty).unwrap();
    assert_eq!(watches_of(outcome).len(), 2);
}

#[test]
fn watches_that_nobody_waits_for_any_more_are_taken_back() {
    for refused in [false, true] {
        let mut world = World::attached();
        let (_, mut outcome) = set_two(&mut world);
        world.written();
        let code = if refused { Code::THROTTLED } else { Code::OK };
        if !refused {
            // The calls end, and with them those that wait for the watches.
            world.machine.requests.end_calls(SessionEnd::Closed, &mut world.machine.deliveries.finished);
        }
        world.answer(1, code, &Response::Empty).unwrap();
        assert_eq!(world.machine.watches.len(), 0);
        let removed: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
        assert_eq!(removed, [OpCode::RemoveWatches, OpCode::RemoveWatches]);
        assert!(outcome.try_recv().is_ok());
    }
}

#[test]
fn a_watch_that_a_request_on_its_way_sets_is_not_removed_behind_it() {
    let mut world = World::attached();
    let (id, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    let (set, _outcome) = set_two(&mut world);
    world.machine.unregister(id, "/a", WatchKind::Data);
    assert_eq!(world.machine.requests.len(), 1);
    // Withdrawn, it wants nothing.
    assert!(world.machine.withdraw(set));
    let (id, _fired) = world.machine.watches.register("/a", WatchKind::Data);
    world.machine.unregister(id, "/a", WatchKind::Data);
    assert_eq!(world.written()[0].request.op(), OpCode::RemoveWatches);
}
