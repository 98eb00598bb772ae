use super::*;

#[test]
fn invalid_input_from_a_server_is_an_error_and_never_a_panic() {
    let reply = |xid: i32, code: i32, body: &[u8]| {
        let mut out = BytesMut::new();
        write_frame(&mut out, |out| {
            ReplyHeader { xid, zxid: 9, code: Code(code) }.write(out);
            out.extend_from_slice(body);
        });
        out
    };
    let raw = |bytes: &[u8]| BytesMut::from(bytes);
    for (what, bytes) in [
        ("length -1", raw(&[0xff; 4])),
        ("length 2^31 - 1", raw(&[0x7f, 0xff, 0xff, 0xff])),
        ("length far above the limit", raw(&[0x40, 0, 0, 1])),
        ("empty frame", raw(&[0, 0, 0, 0])),
        ("frame of one byte", raw(&[0, 0, 0, 1, 0])),
        ("unknown number", reply(77, 0, &[])),
        ("number 0", reply(0, 0, &[])),
        ("negative number", reply(-77, 0, &[])),
        ("short stat", reply(1, 0, &[0, 0, 0, 1, b'x', 0, 0])),
        ("negative length", reply(1, 0, &[0x80, 0, 0, 0])),
        ("huge length", reply(1, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ("event of unknown type", reply(-1, 0, &[0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 0])),
        ("event without utf-8", reply(-1, 0, &[0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0xff])),
        ("four-letter word's reply", raw(b"This ZooKeeper instance is not currently serving requests\n")),
    ] {
        let mut world = World::attached();
        let (_, _read) = world.get("/a", false);
        world.written();
        assert!(world.bytes(bytes).is_err(), "{what}");
    }
    // These inputs are odd but harmless.
    let mut world = World::attached();
    world.bytes(reply(xid::PING, 0, &[])).unwrap();
    world.event(EventKind::Deleted, "");
    for truncated in 1..20 {
        let (mut world, answer) = (World::attached(), reply(1, 0, &[0; 72]));
        world.bytes(BytesMut::from(&answer[..truncated])).unwrap();
    }
}

#[test]
fn an_invalid_connect_response_is_an_error_or_a_loss() {
    for (session_id, timeout_ms) in [(0, 1_000), (1, 0), (1, -1), (0, 0)] {
        let mut world = World::new();
        world.connected();
        let response = ConnectResponse { timeout_ms, session_id, password: Bytes::new(), read_only: None };
        assert!(world.frame(|out| response.write(out)).is_err(), "the server refused to open a session");
    }
    let mut world = World::new();
    world.connected();
    let read_only =
        ConnectResponse { timeout_ms: 1_000, session_id: 1, password: Bytes::new(), read_only: Some(true) };
    assert!(world.frame(|out| read_only.write(out)).is_err());
}
