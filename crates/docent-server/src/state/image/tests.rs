use super::fields::{BadImage, put_bytes};
use crate::EndCause;
use crate::config::Config;
use crate::state::{Effects, Handshake, Origin, State, acl};
use bytes::{BufMut, Bytes, BytesMut};
use docent_proto::{Acl, ConnectRequest, Create, CreateKind, CreateMode, Permissions, Request};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::{prop_assert, prop_assert_eq, proptest};
use std::sync::Arc;
use std::time::Duration;

const NOW: i64 = 1_000_000;

const NEVER: Origin = Origin { zxid: 0, session: 0 };

/// A request of one of three clients, as a step of a server's history.
#[derive(Debug, Clone)]
struct Step {
    client: usize,
    request: Request,
}

fn path() -> impl Strategy<Value = String> {
    select(vec!["/", "/a", "/b", "/a/b", "/a/b/c", "/a/ü", "/zookeeper/quota"]).prop_map(str::to_owned)
}

fn data() -> impl Strategy<Value = Option<Bytes>> {
    prop_oneof![Just(None), vec(any::<u8>(), 0..20).prop_map(|data| Some(data.into()))]
}

fn acl() -> impl Strategy<Value = Vec<Acl>> {
    let entry = |scheme: &'static str, id: &'static str| {
        (0..32).prop_map(move |bits| Acl {
            permissions: Permissions(bits | Permissions::CREATE.0),
            scheme: scheme.into(),
            id: id.into(),
        })
    };
    vec(prop_oneof![entry("world", "anyone"), entry("ip", "127.0.0.1/8"), entry("digest", "u:h")], 1..3)
}

fn create() -> impl Strategy<Value = Request> {
    let modes = vec![
        (CreateMode::Persistent, CreateKind::Plain),
        (CreateMode::Ephemeral, CreateKind::WithStat),
        (CreateMode::PersistentSequential, CreateKind::Plain),
        (CreateMode::EphemeralSequential, CreateKind::Plain),
        (CreateMode::Container, CreateKind::Container),
        (CreateMode::PersistentTtl, CreateKind::Ttl(70)),
    ];
    (path(), data(), acl(), select(modes)).prop_map(|(path, data, acl, (mode, kind))| {
        Request::Create(Create { kind, path, data, acl: acl.into(), flags: mode.flags() })
    })
}

fn step() -> impl Strategy<Value = Step> {
    let request = prop_oneof![
        6 => create(),
        2 => (path(), data()).prop_map(|(path, data)| Request::SetData { path, data, version: -1 }),
        1 => (path(), acl()).prop_map(|(path, acl)| Request::SetAcl { path, acl, version: -1 }),
        1 => path().prop_map(|path| Request::Delete { path, version: -1 }),
        1 => Just(Request::CloseSession),
    ];
    (0..3_usize, request).prop_map(|(client, request)| Step { client, request })
}

fn open(state: &mut State, timeout_ms: i32) -> i64 {
    let request = ConnectRequest { read_only: None, ..ConnectRequest::new_session(timeout_ms) };
    match state.connect(&request, (4_000, 40_000), [127, 0, 0, 1].into(), NOW) {
        Handshake::Attached(response) => response.session_id,
        other => panic!("{other:?}"),
    }
}

/// Gives a session a link again, with the identity that belongs to the link.
fn attach(state: &mut State, session_id: i64) {
    let found = state.database.sessions.get(session_id).unwrap();
    let password = Bytes::copy_from_slice(&found.password);
    let request =
        ConnectRequest { last_zxid_seen: 0, timeout_ms: 10_000, session_id, password, read_only: None };
    let handshake = state.connect(&request, (4_000, 40_000), [127, 0, 0, 1].into(), NOW);
    assert!(matches!(handshake, Handshake::Attached(_)), "{handshake:?}");
}

/// Settings under which all kinds of nodes can be created.
fn config() -> Config {
    Config { ttl_nodes: true, ..Config::default() }
}

fn lived(steps: &[Step]) -> State {
    let mut state = State::new(config(), NEVER);
    let mut clients = [4_000, 10_000, 40_000].map(|timeout_ms| open(&mut state, timeout_ms));
    for (time, Step { client, request }) in steps.iter().enumerate() {
        let now = NOW + i64::try_from(time).unwrap();
        state.apply(clients[*client], request, now, &mut Effects::default());
        if *request == Request::CloseSession {
            clients[*client] = open(&mut state, 5_000);
        }
    }
    state
}

fn image(state: &State) -> Bytes {
    let mut image = BytesMut::new();
    state.image().for_each(|piece| image.extend_from_slice(&piece));
    image.freeze()
}

fn load(image: Bytes, now: i64) -> Result<State, BadImage> {
    State::from_image(image, config(), NEVER, now)
}

proptest! {
    #[test]
    fn a_state_is_restored_from_its_image(steps in vec(step(), 0..60), later in vec(step(), 0..10)) {
        let mut state = lived(&steps);
        let mut loaded = load(image(&state), NOW).unwrap();
        prop_assert_eq!(image(&loaded), image(&state));
        // It also behaves as the original state does: numbers, owners, sequences and limits.
        let clients = state.session_ids();
        clients.iter().for_each(|client| attach(&mut loaded, *client));
        for Step { client, request } in &later {
            let [one, other] = [&mut state, &mut loaded].map(|state| {
                state.apply(clients[*client], request, NOW + 100, &mut Effects::default()).result
            });
            prop_assert_eq!(one, other);
        }
        prop_assert_eq!(loaded.data_bytes(), state.data_bytes());
        prop_assert_eq!(loaded.zxid(), state.zxid());
    }

    #[test]
    fn no_bytes_that_are_taken_for_an_image_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = load(bytes.into(), NOW);
    }

    #[test]
    fn no_damage_to_an_image_panics(steps in vec(step(), 0..20), place in any::<usize>(), byte in any::<u8>()) {
        let mut image = image(&lived(&steps)).to_vec();
        let place = place % image.len();
        image[place] = byte;
        let _ = load(image.into(), NOW);
    }

    #[test]
    fn an_image_without_sessions_has_no_ephemeral_node(steps in vec(step(), 0..60)) {
        let state = lived(&steps);
        let bare = load(image(&state.without_sessions(NOW)), NOW).unwrap();
        prop_assert!(bare.session_ids().is_empty());
        let stays = |path: &String| state.node_info(path).unwrap().stat.ephemeral_owner == 0;
        let staying: Vec<String> = state.paths().into_iter().filter(stays).collect();
        prop_assert_eq!(bare.paths(), staying);
    }
}

#[test]
fn each_session_has_its_full_timeout_after_it_was_loaded() {
    let later = NOW + 3_600_000;
    let loaded = load(image(&lived(&[])), later).unwrap();
    assert!(loaded.overdue(later + 3_999).is_empty());
    assert_eq!(loaded.overdue(later + 6_000).len(), 1, "only the shortest timeout has passed");
}

#[test]
fn numbers_continue_after_those_of_the_image_and_the_clock() {
    let state = lived(&[]);
    let far = Origin { zxid: 1 << 50, session: 1 << 50 };
    let mut loaded = State::from_image(image(&state), Config::default(), far, NOW).unwrap();
    assert_eq!(loaded.zxid(), 1 << 50);
    assert_eq!(open(&mut loaded, 4_000), (1 << 50) + 1);
    let mut loaded = load(image(&state), NOW).unwrap();
    assert_eq!(loaded.zxid(), state.zxid());
    assert_eq!(open(&mut loaded, 4_000), state.session_ids()[2] + 1);
}

#[test]
fn a_container_of_an_image_is_deleted_after_its_last_child() {
    let request = |path: &str, mode: CreateMode, kind| Step {
        client: 0,
        request: Request::Create(Create {
            kind,
            path: path.into(),
            data: None,
            acl: Acl::open().into(),
            flags: mode.flags(),
        }),
    };
    let state = lived(&[
        request("/c", CreateMode::Container, CreateKind::Container),
        request("/c/e", CreateMode::Ephemeral, CreateKind::Plain),
    ]);
    let mut loaded = load(image(&state), NOW).unwrap();
    loaded.expire(state.session_ids()[0], EndCause::Expired, NOW, &mut Effects::default());
    assert_eq!(loaded.done(NOW), ["/c"]);
    loaded.reap("/c", NOW, &mut Effects::default());
    assert!(loaded.paths().is_empty());
}

/// Returns an image with these sessions, given by their timeouts, and these nodes, given by their path and
/// kind, besides the nodes that every server has.
fn image_of(timeouts: &[i32], nodes: &[(&str, u8)]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_slice(&[0; 16]);
    out.put_u32(u32::try_from(timeouts.len()).unwrap());
    let system = ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"].map(|path| (path, 0));
    out.put_u32(u32::try_from(system.len() + nodes.len()).unwrap());
    for timeout_ms in timeouts {
        out.put_i64(7);
        out.put_slice(&[0; 16]);
        out.put_i32(*timeout_ms);
    }
    for (path, lifetime) in system.iter().chain(nodes) {
        out.put_u32(u32::try_from(path.len()).unwrap());
        out.put_slice(path.as_bytes());
        out.put_slice(&[0, *lifetime]);
        out.put_i64(7);
        out.put_slice(&[0; 4 + 5 * 8 + 3 * 4]);
    }
    out.freeze()
}

#[test]
fn states_in_which_no_server_can_be_are_refused() {
    assert!(load(image_of(&[4_000], &[("/a", 0), ("/b", 1), ("/c", 2)]), NOW).is_ok());
    for (timeouts, nodes) in [
        (&[0][..], &[][..]),
        (&[4_000, 4_000], &[]),
        (&[], &[("/a", 1)]),
        (&[], &[("/a", 9)]),
        (&[], &[("/a/b", 0)]),
        (&[], &[("/a", 0), ("/a", 0)]),
        (&[], &[("a", 0)]),
        (&[], &[("/a/", 0)]),
        (&[4_000], &[("/a", 1), ("/a/b", 0)]),
    ] {
        assert!(load(image_of(timeouts, nodes), NOW).is_err(), "{timeouts:?} {nodes:?}");
    }
}

/// Returns an image with one session and the nodes that every server has.
fn forged(zxid: i64, last_id: i64, session: i64, lifetime: impl Fn(&str) -> (u8, i64)) -> Bytes {
    let mut out = BytesMut::new();
    out.put_i64(zxid);
    out.put_i64(last_id);
    out.put_u32(1);
    out.put_u32(4);
    out.put_i64(session);
    out.put_slice(&[0; 16]);
    out.put_i32(4_000);
    for path in ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"] {
        put_bytes(&mut out, path.as_bytes());
        out.put_u8(0);
        let (kind, number) = lifetime(path);
        out.put_u8(kind);
        out.put_i64(number);
        out.put_u32(1);
        out.put_i32(Permissions::ALL.0);
        put_bytes(&mut out, b"world");
        put_bytes(&mut out, b"anyone");
        out.put_slice(&[0; 5 * 8 + 3 * 4]);
    }
    out.freeze()
}

#[test]
fn numbers_continue_after_those_of_a_file_above_the_current_range() {
    let (kept, today) = (1_800_000_000_000_000_000, Origin::at(Duration::from_secs(1_800_000_000)));
    assert!(kept > today.zxid);
    let forged = forged(kept, 7, 7, |_| (0, 0));
    let mut loaded = State::from_image(forged, Config::default(), today, NOW).unwrap();
    assert_eq!(loaded.zxid(), kept);
    open(&mut loaded, 4_000);
    assert_eq!(loaded.zxid(), kept + 1);
}

#[test]
fn an_image_that_no_server_wrote_is_refused() {
    let stays = |_: &str| (0, 0);
    let loaded = load(forged(5, 7, 7, stays), NOW).unwrap();
    assert_eq!(loaded.database.tree.weight(), 0);
    assert!(Arc::ptr_eq(&loaded.database.tree.get("/").unwrap().acl, &acl::open()));
    for (zxid, last_id, session) in
        [(i64::MAX, 7, 7), (5, i64::MAX, 7), (5, 7, i64::MAX), (-1, 7, 7), (5, -1, 7), (5, 7, i64::MIN)]
    {
        assert!(load(forged(zxid, last_id, session, stays), NOW).is_err(), "{zxid} {last_id} {session}");
    }
    for lifetime in [(1, 7), (2, 0), (3, 1)] {
        for goes in ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"] {
            let lifetime = |path: &str| if path == goes { lifetime } else { (0, 0) };
            assert!(load(forged(5, 7, 7, lifetime), NOW).is_err(), "{goes}");
        }
    }
}
