use super::Peer;
use bytes::Bytes;
use docent_battery::{Backend, ServerOptions, TestServer, both_backends_in_real_time};
use docent_proto::EventKind::{Created, Deleted};
use docent_proto::{
    Acl, Code, Create, CreateKind, CreateMode, MultiOp, MultiResult, Request, Response, WatchMode,
};
use docent_testkit::eventually;
use std::time::Duration;

const CHECK: Duration = Duration::from_millis(50);
/// A time to live far longer than any node of these tests lives, in milliseconds.
const LATER: i64 = 3_600_000;
/// Maximum time to live, in milliseconds.
const LONGEST: i64 = 0xff_ffff_ffff;

async fn start(backend: Backend) -> TestServer {
    let options = ServerOptions::default().extended_types(true).container_check_interval(CHECK);
    backend.start_own_with(options).await
}

fn create(path: &str, mode: CreateMode, kind: CreateKind) -> Create {
    Create { kind, path: path.into(), data: Some(Bytes::new()), acl: Acl::open().into(), flags: mode.flags() }
}

async fn create_node(
    peer: &mut Peer,
    path: &str,
    mode: CreateMode,
    kind: CreateKind,
) -> Result<String, Code> {
    match peer.call(Request::Create(create(path, mode, kind))).await? {
        Response::Created { path, stat } => {
            assert_eq!(stat.map(|stat| stat.ephemeral_owner), Some(0));
            Ok(path)
        }
        other => panic!("{other:?}"),
    }
}

async fn exists(peer: &mut Peer, path: &str) -> bool {
    peer.call(Request::Exists { path: path.into(), watch: false }).await.is_ok()
}

/// Waits until a node is deleted.
async fn until_deleted(peer: &mut Peer, path: &str) {
    eventually(super::TIMEOUT, async || exists(peer, path).await, |there| !there)
        .await
        .expect("the server deletes the node");
}

both_backends_in_real_time! {
    async fn a_time_to_live_must_be_a_positive_number_of_five_bytes(backend: Backend) {
        let server = start(backend).await;
        let mut peer = Peer::of(&server).await;
        let path = server.path("a");
        for mode in [CreateMode::PersistentTtl, CreateMode::PersistentSequentialTtl] {
            for ttl in [0, -1, i64::MIN, LONGEST + 1, i64::MAX] {
                let refused = create_node(&mut peer, &path, mode, CreateKind::Ttl(ttl)).await;
                assert_eq!(refused, Err(Code::BAD_ARGUMENTS), "{mode:?} {ttl}");
            }
            for kind in [CreateKind::WithStat, CreateKind::Container] {
                assert_eq!(create_node(&mut peer, &path, mode, kind).await, Err(Code::BAD_ARGUMENTS), "{mode:?} {kind:?}");
            }
            let made = create_node(&mut peer, &path, mode, CreateKind::Ttl(LONGEST)).await.unwrap();
            assert_eq!(made.len() - path.len(), if mode.is_sequential() { 10 } else { 0 });
        }
        for mode in [CreateMode::Persistent, CreateMode::Ephemeral, CreateMode::Container] {
            let refused = create_node(&mut peer, &path, mode, CreateKind::Ttl(LATER)).await;
            assert_eq!(refused, Err(Code::BAD_ARGUMENTS), "{mode:?}");
        }
    }

    async fn without_the_switch_a_time_to_live_is_refused_before_all_else(backend: Backend) {
        let server = backend.start().await;
        let mut peer = Peer::of(&server).await;
        for kind in [CreateKind::Ttl(LATER), CreateKind::Ttl(0), CreateKind::WithStat, CreateKind::Container] {
            let mut create = create("none", CreateMode::PersistentTtl, kind);
            create.acl = [].into();
            assert_eq!(peer.call(Request::Create(create)).await, Err(Code::UNIMPLEMENTED), "{kind:?}");
        }
        let refused = create_node(&mut peer, "none", CreateMode::Persistent, CreateKind::Ttl(LATER)).await;
        assert_eq!(refused, Err(Code::BAD_ARGUMENTS));
    }

    async fn in_a_multi_the_mode_decides_whether_there_is_a_time_to_live(backend: Backend) {
        let server = start(backend).await;
        let mut peer = Peer::of(&server).await;
        let [ttl, plain] = ["ttl", "plain"].map(|name| server.path(name));
        let op = |path: &str, mode, kind| MultiOp::Create(create(path, mode, kind));
        let ops = vec![
            op(&ttl, CreateMode::PersistentTtl, CreateKind::Ttl(1)),
            op(&plain, CreateMode::Persistent, CreateKind::Ttl(1)),
        ];
        peer.stay(server.root(), WatchMode::PersistentRecursive).await;
        let Ok(Response::Multi(results)) = peer.call(Request::Multi(ops)).await else { panic!() };
        assert!(matches!(&results[0], MultiResult::Created { path, stat: Some(_) } if *path == ttl));
        assert!(matches!(&results[1], MultiResult::Created { path, stat: None } if *path == plain));
        until_deleted(&mut peer, &ttl).await;
        assert_eq!(peer.drain_events().await, [(Created, ttl.clone()), (Created, plain.clone()), (Deleted, ttl.clone())]);
        assert!(exists(&mut peer, &plain).await);
        let too_long = vec![op(&ttl, CreateMode::PersistentTtl, CreateKind::Ttl(0)), op(&ttl, CreateMode::Persistent, CreateKind::Plain)];
        let failed = [Code::BAD_ARGUMENTS, Code::RUNTIME_INCONSISTENCY].map(MultiResult::Failed).to_vec();
        assert_eq!(peer.call(Request::Multi(too_long)).await, Ok(Response::Multi(failed)));
        let without = vec![op(&ttl, CreateMode::PersistentTtl, CreateKind::Plain)];
        assert_eq!(peer.call(Request::Multi(without)).await, Err(Code::MARSHALLING_ERROR));
    }

    async fn an_expired_ttl_node_is_deleted_unless_it_has_a_child_or_new_data(backend: Backend) {
        let server = start(backend).await;
        let mut peer = Peer::of(&server).await;
        let [short, parent, child, touched, long] =
            ["short", "parent", "parent/child", "touched", "long"].map(|name| server.path(name));
        for (path, ttl) in [(&short, 1), (&touched, 1_000), (&long, LATER)] {
            create_node(&mut peer, path, CreateMode::PersistentTtl, CreateKind::Ttl(ttl)).await.unwrap();
        }
        // The delete takes effect immediately, before the time to live ends.
        let family = [
            create(&parent, CreateMode::PersistentTtl, CreateKind::Ttl(1)),
            create(&child, CreateMode::Persistent, CreateKind::Plain),
        ];
        peer.call(Request::Multi(family.map(MultiOp::Create).into())).await.unwrap();
        for _ in 0..30 {
            peer.set(&touched).await;
            tokio::time::sleep(CHECK).await;
        }
        assert!(!exists(&mut peer, &short).await);
        for path in [&parent, &touched, &long] {
            assert!(exists(&mut peer, path).await, "{path}");
        }
        peer.delete(&child).await;
        until_deleted(&mut peer, &parent).await;
        until_deleted(&mut peer, &touched).await;
        assert!(exists(&mut peer, &long).await);
    }
}
