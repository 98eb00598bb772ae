use super::*;

#[test]
fn a_new_session_carries_the_last_transaction_of_the_previous_one() {
    let mut world = World::new();
    let request = world.connected();
    assert_eq!((request.session_id, request.last_zxid_seen, request.timeout_ms), (0, 7, 12_000));
}

#[test]
fn re_attach_requests_the_first_granted_timeout_and_the_smallest_counts() {
    let mut world = World::new();
    world.attach(SESSION, T / 2).unwrap();
    world.lose_link();
    let request = world.attach(SESSION, T / 4).unwrap();
    assert_eq!(
        (request.session_id, request.timeout_ms, request.password.as_ref()),
        (SESSION, 6_000, b"secret".as_ref())
    );
    assert_eq!(world.lease.timeout(), T / 4);
    world.lose_link();
    assert_eq!(world.attach(SESSION, T).unwrap().timeout_ms, 6_000);
    assert_eq!(world.lease.timeout(), T / 4);
}

#[test]
fn a_handshake_has_its_own_timeout() {
    let mut world = World::new();
    world.connected();
    assert_eq!(world.machine.next_deadline(), Some(world.now + T / 3));
    world.pass(T / 3);
    assert!(matches!(world.machine.tick(world.now), Err(LinkError::Handshake)));
}

#[test]
fn another_session_than_the_one_asked_for_is_a_loss() {
    let mut world = World::attached();
    world.lose_link();
    world.attach(SESSION + 1, T).unwrap();
    assert_eq!(world.machine.ended(), Some(SessionEnd::Expired));
}
