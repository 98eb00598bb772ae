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
/// Far more than any node here has to live.
const LATER: i64 = 3_600_000;
/// Longest time to live there is.
const LONGEST: i64 = 0xff_ffff_ffff;

async fn start(backend: Backend) -> TestServer {
    let options = ServerOptions::default().extended_types(true).container_check_interval(CHECK);
    backend.start_own_with(options).await
}

fn create(path: &str, mode: CreateMode, kind: CreateKind) -> Create {
    Create { kind, path: path.into(), data: Some(Bytes::new()), acl: Acl::open().into(), flags: mode.flags() }
}

async fn make(peer: &mut Peer, path: &str, mode: CreateMode, kind: CreateKind) -> Result<String, Code> {
    match peer.call(Request::Create(create(path, mode, kind))).await? {
        Response::Created { path, stat } => {
            assert_eq!(stat.map(|stat| stat.ephemeral_owner), Some(0));
            Ok(path)
        }
        other => panic!("{other:?}"),
    }
}

async fn is_there(peer: &mut Peer, path: &str) -> bool {
    peer.call(Request::Exists { path: path.into(), watch: false }).await.is_ok()
}

/// Waits until a node is deleted.
async fn gone(peer: &mut Peer, path: &str) {
    eventually(super::TIMEOUT, async || is_there(peer, path).await, |there| !there)
        .await
        .expect("the server deletes it");
}

both_backends_in_real_time! {
    async fn a_time_to_live_must_be_a_positive_number_of_five_bytes(backend: Backend) {
        let server = start(backend).await;
        let mut peer = Peer::of(&server).await;
        let path = server.path("a");
        for mode in [CreateMode::PersistentTtl, CreateMode::PersistentSequentialTtl] {
            for ttl in [0, -1, i64::MIN, LONGEST + 1, i64::MAX] {
                let refused = make(&mut peer, &path, mode, CreateKind::Ttl(ttl)).await;
                assert_eq!(refused, Err(Code::BAD_ARGUMENTS), "{mode:?} {ttl}");
            }
            for kind in [CreateKind::WithStat, CreateKind::Container] {
                assert_eq!(make(&mut peer, &path, mode, kind).await, Err(Code::BAD_ARGUMENTS), "{mode:?} {kind:?}");
            }
            let made = make(&mut peer, &path, mode, CreateKind::Ttl(LONGEST)).await.unwrap();
            assert_eq!(made.len() - path.len(), if mode.is_sequential() { 10 } else { 0 });
        }
        for mode in [CreateMode::Persistent, CreateMode::Ephemeral, CreateMode::Container] {
            let refused = make(&mut peer, &path, mode, CreateKind::Ttl(LATER)).await;
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
        let refused = make(&mut peer, "none", CreateMode::Persistent, CreateKind::Ttl(LATER)).await;
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
        gone(&mut peer, &ttl).await;
        assert_eq!(peer.news().await, [(Created, ttl.clone()), (Created, plain.clone()), (Deleted, ttl.clone())]);
        assert!(is_there(&mut peer, &plain).await);
        let too_long = vec![op(&ttl, CreateMode::PersistentTtl, CreateKind::Ttl(0)), op(&ttl, CreateMode::Persistent, CreateKind::Plain)];
        let failed = [Code::BAD_ARGUMENTS, Code::RUNTIME_INCONSISTENCY].map(MultiResult::Failed).to_vec();
        assert_eq!(peer.call(Request::Multi(too_long)).await, Ok(Response::Multi(failed)));
        let without = vec![op(&ttl, CreateMode::PersistentTtl, CreateKind::Plain)];
        assert_eq!(peer.call(Request::Multi(without)).await, Err(Code::MARSHALLING_ERROR));
    }

    async fn a_node_whose_time_is_over_goes_unless_it_has_a_child_or_new_data(backend: Backend) {
        let server = start(backend).await;
        let mut peer = Peer::of(&server).await;
        let [short, parent, child, touched, long] =
            ["short", "parent", "parent/child", "touched", "long"].map(|name| server.path(name));
        for (path, ttl) in [(&short, 1), (&touched, 1_000), (&long, LATER)] {
            make(&mut peer, path, CreateMode::PersistentTtl, CreateKind::Ttl(ttl)).await.unwrap();
        }
        // At once, before its time is over.
        let family = [
            create(&parent, CreateMode::PersistentTtl, CreateKind::Ttl(1)),
            create(&child, CreateMode::Persistent, CreateKind::Plain),
        ];
        peer.call(Request::Multi(family.map(MultiOp::Create).into())).await.unwrap();
        for _ in 0..30 {
            peer.set(&touched).await;
            tokio::time::sleep(CHECK).await;
        }
        assert!(!is_there(&mut peer, &short).await);
        for path in [&parent, &touched, &long] {
            assert!(is_there(&mut peer, path).await, "{path}");
        }
        peer.delete(&child).await;
        gone(&mut peer, &parent).await;
        gone(&mut peer, &touched).await;
        assert!(is_there(&mut peer, &long).await);
    }
}
