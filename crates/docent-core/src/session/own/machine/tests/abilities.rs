//! Servers that know fewer operations.

use super::*;
use crate::session::abilities::Ability;
use docent_proto::{Acl, Create, CreateKind, CreateMode};

fn create(mode: CreateMode) -> Request {
    Request::Create(Create::new("/a".to_owned(), Bytes::from_static(b"data"), Acl::open(), mode, 1))
}

/// Attaches to a ClickHouse Keeper.
fn keeper(world: &mut World, session_id: i64) {
    world.connected();
    let response = ConnectResponse {
        timeout_ms: i32::try_from(T.as_millis()).unwrap(),
        session_id,
        password: Bytes::from_static(&[0; 16]),
        read_only: None,
    };
    world.frame(|out| response.write(out)).unwrap();
}

fn ops(world: &mut World) -> Vec<OpCode> {
    world.written().iter().map(|frame| frame.request.op()).collect()
}

/// Loses the link because the server closed it.
fn hang_up(world: &mut World) {
    world.machine.hung_up(world.now);
    world.lose_link();
    world.machine.dialled(None, false, world.now);
    world.attach(SESSION, T).unwrap();
}

fn lacks(world: &World, ability: Ability) -> bool {
    world.machine.settings.abilities.lacks(ability)
}

#[test]
fn a_refused_create2_was_not_sent_and_the_next_one_is_a_create_whose_stat_is_that_of_its_transaction() {
    let mut world = World::attached();
    let (_, mut refused) = world.submit(create(CreateMode::Ephemeral)).unwrap();
    assert_eq!(ops(&mut world), [OpCode::Create2]);
    world.answer(1, Code::UNIMPLEMENTED, &Response::Empty).unwrap();
    assert!(matches!(refused.try_recv(), Ok(Outcome::NotSent(Cause::LinkLost))));
    let (_, mut created) = world.submit(create(CreateMode::Ephemeral)).unwrap();
    assert_eq!(ops(&mut world), [OpCode::Create]);
    world.answer(2, Code::OK, &Response::Created { path: "/a".to_owned(), stat: None }).unwrap();
    let Ok(Outcome::Reply(reply)) = created.try_recv() else { panic!() };
    let Ok(Response::Created { stat: Some(stat), .. }) = reply.result else { panic!() };
    assert_eq!((stat.czxid, stat.mzxid, stat.pzxid), (reply.zxid, reply.zxid, reply.zxid));
    assert_eq!((stat.ephemeral_owner, stat.data_length, stat.ctime), (SESSION, 4, 0));
}

#[test]
fn a_create2_that_is_refused_before_earlier_replies_was_not_sent() {
    let mut world = World::attached();
    let (_, _read) = world.get("/b", false);
    let (_, mut refused) = world.submit(create(CreateMode::Persistent)).unwrap();
    world.written();
    assert!(world.answer(2, Code::UNIMPLEMENTED, &Response::Empty).is_err());
    assert!(matches!(refused.try_recv(), Ok(Outcome::NotSent(Cause::LinkLost))));
    assert!(lacks(&world, Ability::Create2));
}

#[test]
fn what_has_no_substitute_is_refused_without_being_sent() {
    let mut world = World::attached();
    let (_, mut first) = world.submit(create(CreateMode::Container)).unwrap();
    world.written();
    world.answer(1, Code::UNIMPLEMENTED, &Response::Empty).unwrap();
    let multi = |mode| {
        let Request::Create(create) = create(mode) else { panic!() };
        Request::Multi(vec![MultiOp::Create(create)])
    };
    let (_, mut second) = world.submit(create(CreateMode::Container)).unwrap();
    let (_, mut within) = world.submit(multi(CreateMode::Container)).unwrap();
    let (_, _other) = world.submit(multi(CreateMode::Persistent)).unwrap();
    let written = world.written();
    let [one] = &written[..] else { panic!("{written:?}") };
    let Request::Multi(ops) = &one.request else { panic!() };
    assert!(matches!(&ops[..], [MultiOp::Create(Create { kind: CreateKind::Plain, .. })]));
    // Outcomes are delivered after the machine was called.
    world.event(EventKind::Deleted, "/other");
    for outcome in [&mut first, &mut second, &mut within] {
        let Ok(Outcome::Reply(reply)) = outcome.try_recv() else { panic!() };
        assert_eq!(reply.result.unwrap_err(), Code::UNIMPLEMENTED);
    }
}

#[test]
fn a_ttl_node_that_the_servers_know_and_do_not_permit_is_asked_for_again() {
    let mut world = World::attached();
    for (xid, zxid, is_missing) in [(1, 9, false), (2, -1, true)] {
        let (_, _outcome) = world.submit(create(CreateMode::PersistentTtl)).unwrap();
        world.written();
        let header = ReplyHeader { xid, zxid, code: Code::UNIMPLEMENTED };
        world.frame(|out| header.write(out)).unwrap();
        assert_eq!(lacks(&world, Ability::Ttl), is_missing);
    }
}

#[test]
fn repeated_hang_ups_lead_to_a_probe_alone_on_the_link_and_only_that_decides() {
    let mut world = World::attached();
    for _ in 0..2 {
        let (_, mut lost) = world.submit(create(CreateMode::Persistent)).unwrap();
        assert_eq!(ops(&mut world), [OpCode::Create2]);
        hang_up(&mut world);
        assert!(matches!(lost.try_recv(), Ok(Outcome::Unknown(Cause::LinkLost))));
    }
    let (_, mut read) = world.get("/b", false);
    let (_, mut created) = world.submit(create(CreateMode::Persistent)).unwrap();
    assert_eq!(ops(&mut world), [OpCode::GetData]);
    let xid = world.machine.next_xid - 1;
    world.answer(xid, Code::NO_NODE, &Response::Empty).unwrap();
    assert!(read.try_recv().is_ok());
    let written = world.written();
    let [probe] = &written[..] else { panic!("{written:?}") };
    assert_eq!((probe.request.op(), probe.request.path()), (OpCode::Create2, Some("/")));
    assert!(ops(&mut world).is_empty(), "nothing is sent before the answer");
    hang_up(&mut world);
    assert!(created.try_recv().is_err(), "the request waits");
    assert_eq!(ops(&mut world), [OpCode::Create]);
}

#[test]
fn a_probe_that_is_answered_corrects_the_suspicion() {
    let mut world = World::attached();
    for _ in 0..2 {
        let (_, _lost) = world.submit(create(CreateMode::Persistent)).unwrap();
        world.written();
        hang_up(&mut world);
    }
    let (_, _created) = world.submit(create(CreateMode::Persistent)).unwrap();
    assert_eq!(ops(&mut world), [OpCode::Create2]);
    let xid = world.machine.next_xid - 1;
    world.answer(xid, Code::NODE_EXISTS, &Response::Empty).unwrap();
    let written = world.written();
    assert_eq!((written[0].request.op(), written[0].request.path()), (OpCode::Create2, Some("/a")));
    for _ in 0..3 {
        hang_up(&mut world);
        let (_, _created) = world.submit(create(CreateMode::Persistent)).unwrap();
        assert_eq!(ops(&mut world), [OpCode::Create2], "the servers have answered it before");
    }
}

#[test]
fn a_link_that_is_lost_otherwise_raises_no_suspicion() {
    let mut world = World::attached();
    for _ in 0..5 {
        let (_, _lost) = world.submit(create(CreateMode::Persistent)).unwrap();
        let written = world.written();
        assert_eq!((written.len(), written[0].request.path()), (1, Some("/a")));
        world.lose_link();
        world.attach(SESSION, T).unwrap();
    }
}

#[test]
fn a_keeper_is_probed_for_containers_before_anything_else_and_never_asked_for_create2() {
    let mut world = World::new();
    world.machine.dialled(None, false, world.now);
    let (_, _created) = world.submit(create(CreateMode::Persistent)).unwrap();
    keeper(&mut world, SESSION);
    assert_eq!(ops(&mut world), [OpCode::CreateContainer]);
    world.answer(1, Code::NODE_EXISTS, &Response::Empty).unwrap();
    assert_eq!(ops(&mut world), [OpCode::Create]);
    assert!(!lacks(&world, Ability::Containers));
}

#[test]
fn a_keeper_that_hangs_up_on_the_probe_has_no_containers() {
    let mut world = World::new();
    world.machine.dialled(None, false, world.now);
    keeper(&mut world, SESSION);
    assert_eq!(ops(&mut world), [OpCode::CreateContainer]);
    assert!(!world.machine.link_state().up, "it is not known yet whether the session lives");
    let (_, _created) = world.submit(create(CreateMode::Persistent)).unwrap();
    world.machine.hung_up(world.now);
    world.lose_link();
    assert!(lacks(&world, Ability::Containers) && lacks(&world, Ability::Ttl));
    assert_eq!((world.machine.ended(), world.machine.link_state().losses), (None, 0));
    world.machine.dialled(None, false, world.now);
    keeper(&mut world, SESSION + 1);
    assert_eq!(ops(&mut world), [OpCode::Create], "the next link opens another session");
    assert!(world.machine.link_state().up);
    world.lose_link();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired), "and this one ends with its link");
}

#[test]
fn a_session_in_use_ends_with_the_link_that_a_keeper_closes_on_a_later_probe() {
    let mut world = World::new();
    world.machine.dialled(None, false, world.now);
    keeper(&mut world, SESSION);
    world.written();
    world.answer(1, Code::NODE_EXISTS, &Response::Empty).unwrap();
    let (_, _node) = world.submit(create(CreateMode::Ephemeral)).unwrap();
    world.written();
    world.answer(2, Code::OK, &Response::Created { path: "/a".to_owned(), stat: None }).unwrap();
    for _ in 0..2 {
        world.machine.settings.abilities.hung_up(Ability::MultiReads, false, world.now);
    }
    let read = Request::MultiRead(vec![MultiOp::GetData { path: "/a".to_owned() }]);
    let (_, _read) = world.submit(read).unwrap();
    let written = world.written();
    assert_eq!((written.len(), written[0].request.op()), (1, OpCode::MultiRead));
    assert_eq!(world.machine.probe, Some(Ability::MultiReads));
    world.machine.hung_up(world.now);
    world.lose_link();
    assert_eq!(
        world.machine.ended(),
        Some(SessionEnd::Expired),
        "its guards must not live on in another one"
    );
}

#[test]
fn the_owner_that_a_keeper_shows_for_containers_is_no_session() {
    let mut world = World::new();
    keeper(&mut world, SESSION);
    world.written();
    world.answer(1, Code::NODE_EXISTS, &Response::Empty).unwrap();
    let (_, mut read) = world.get("/c", false);
    world.written();
    let stat = Stat { ephemeral_owner: i64::MIN, ..Stat::default() };
    world.answer(2, Code::OK, &Response::Data { data: None, stat }).unwrap();
    let Ok(Outcome::Reply(reply)) = read.try_recv() else { panic!() };
    let Ok(Response::Data { stat, .. }) = reply.result else { panic!() };
    assert_eq!(stat.ephemeral_owner, 0);
}
