//! Clients that only read, and servers that have lost their quorum.

use super::*;
use crate::session::abilities::Ability;
use docent_proto::{Acl, Create, CreateMode};

/// A machine that only reads, in the handshake with a server. `again` is true if all servers were tried.
fn reader(again: bool) -> (World, ConnectRequest) {
    let mut world = World::new();
    world.machine.settings.only_reads = true;
    let request = dial(&mut world, again);
    (world, request)
}

fn dial(world: &mut World, again: bool) -> ConnectRequest {
    world.machine.dialled(None, again, world.now);
    world.connected()
}

fn greet(world: &mut World, session_id: i64, read_only: bool) -> Result<(), LinkError> {
    let response = ConnectResponse {
        timeout_ms: i32::try_from(T.as_millis()).unwrap(),
        session_id,
        password: Bytes::from_static(b"secret"),
        read_only: Some(read_only),
    };
    world.frame(|out| response.write(out))
}

#[test]
fn only_a_client_that_only_reads_asks_for_a_read_only_session_and_only_after_all_servers() {
    let mut writer = World::new();
    assert_eq!(dial(&mut writer, true).read_only, Some(false));
    assert!(greet(&mut writer, SESSION, true).is_err());
    let (mut world, request) = reader(false);
    assert_eq!(request.read_only, Some(false));
    assert!(greet(&mut world, SESSION, true).is_err(), "it was not asked for");
    let (mut world, request) = reader(true);
    assert_eq!(request.read_only, Some(true));
    greet(&mut world, SESSION, true).unwrap();
    assert_eq!(world.machine.link_state(), LinkState { up: true, is_read_only: true, losses: 0 });
    let (mut world, _) = reader(true);
    greet(&mut world, SESSION, false).unwrap();
    assert!(!world.machine.link_state().is_read_only, "the server has a quorum");
}

#[test]
fn writes_are_refused_before_they_are_sent() {
    for read_only in [true, false] {
        let (mut world, _) = reader(true);
        greet(&mut world, SESSION, read_only).unwrap();
        let create =
            Create::new("/a".to_owned(), Bytes::from_static(b"data"), Acl::open(), CreateMode::Ephemeral, 1);
        let (_, mut created) = world.submit(Request::Create(create)).unwrap();
        let mut checked = world.check();
        let (_, mut read) = world.get("/a", true);
        let sent = world.written();
        assert_eq!(sent.iter().map(|frame| frame.request.op()).collect::<Vec<_>>(), [OpCode::GetData]);
        world.deliver();
        for refused in [&mut created, &mut checked] {
            let Ok(Outcome::Reply(reply)) = refused.try_recv() else { panic!("the write must be refused") };
            assert_eq!(reply.refusal(), Some(Code::NOT_READ_ONLY));
        }
        assert!(world.machine.ephemerals.paths().is_empty());
        world.answer(sent[0].xid, Code::OK, &data()).unwrap();
        assert!(matches!(read.try_recv(), Ok(Outcome::Reply(Reply { result: Ok(_), .. }))));
    }
}

#[test]
fn writes_are_refused_also_without_a_link() {
    let (mut world, _) = reader(false);
    world.lose_link();
    let mut refused = world.check();
    world.deliver();
    let Ok(Outcome::Reply(reply)) = refused.try_recv() else { panic!("the write must be refused") };
    assert_eq!(reply.refusal(), Some(Code::NOT_READ_ONLY));
}

#[test]
fn each_lost_link_ends_the_session_of_a_client_that_only_reads() {
    for read_only in [true, false] {
        let (mut world, _) = reader(true);
        greet(&mut world, SESSION, read_only).unwrap();
        world.lose_link();
        assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
        assert!(!world.machine.link_state().is_read_only);
        assert!(world.machine.closer().is_none(), "a server without a quorum could not close the session");
    }
}

#[test]
fn a_server_without_a_quorum_is_left_after_a_while_to_look_for_another_one() {
    let (mut world, _) = reader(true);
    greet(&mut world, SESSION, true).unwrap();
    let end = world.now + SEARCH;
    while world.now < end {
        assert!(world.machine.tick(world.now).is_ok());
        let next = world.machine.next_deadline().unwrap();
        assert!(next <= end && next > world.now);
        world.now = next;
        for ping in world.written() {
            world.answer(ping.xid, Code::OK, &Response::Empty).unwrap();
        }
    }
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::ReadOnly)));
}

#[test]
fn a_client_that_only_reads_probes_no_server_with_a_write() {
    let (mut world, _) = reader(false);
    let response = ConnectResponse {
        timeout_ms: i32::try_from(T.as_millis()).unwrap(),
        session_id: SESSION,
        password: Bytes::from_static(&[0; 16]),
        read_only: None,
    };
    world.frame(|out| response.write(out)).unwrap();
    assert!(world.machine.link_state().up, "a Keeper is otherwise probed with a write");
    let abilities = Arc::clone(&world.machine.settings.abilities);
    for _ in 0..2 {
        abilities.hung_up(Ability::RemoveWatches, false, world.now);
    }
    assert_eq!(abilities.to_probe(Some(Ability::RemoveWatches), true), Some(Ability::RemoveWatches));
    let (_, _read) = world.get("/a", false);
    let sent: Vec<_> = world.written().iter().map(|frame| frame.request.op()).collect();
    assert_eq!(sent, [OpCode::GetData]);
}
