//! Text of values that users see: `Debug` of handles, `Display` of states and kinds, and serialized forms.

use crate::{builder, connect};
use docent::cache::{ChildrenCache, NodeCache, TreeCache};
use docent::client::{ParentKind, RollbackPolicy};
use docent::config::{Origin, RejectionReason, SharedCount};
use docent::discovery::{PickPolicy, RegistrationStatus, RegistryLayout, ServiceType};
use docent::election::ElectionLayout;
use docent::guard::LostReason;
use docent::locks::{Partitioner, SharedLimit, TimedLease};
use docent::queue::QueueLayout;
use docent::recipe::{KeptNode, Line, Role};
use docent::{
    Barrier, Client, Config, ConfigTree, ConnectionState, Counter, CreateMode, DoubleBarrier, Election,
    ErrorKind, Instance, Membership, MultiLock, Mutex, Queue, Registry, RwLock, Semaphore, SharedValue,
    SimpleQueue,
};
use docent_battery::{Backend, both_backends};
use docent_tests::{KIND, soon};
use serde_json::{Value, json};
use std::fmt::{Debug, Display};
use std::time::Duration;

/// Maximum length of a handle's text on one line.
const LONGEST: usize = 400;

/// Panics if a handle prints no path, no client, or more than three levels of nested parts.
fn check_handle(handle: &dyn Debug, path: &str, client: &Client) {
    let printed = format!("{handle:?}");
    assert!(printed.contains(&format!("{path:?}")), "no path {path:?}: {printed}");
    assert!(printed.contains(&format!("{client:?}")), "no client: {printed}");
    check_short(handle);
}

/// Panics if more than three levels of nested parts are printed.
fn check_short(value: &dyn Debug) {
    let printed = format!("{value:?}");
    assert!(printed.len() <= LONGEST, "{} characters: {printed}", printed.len());
    let depth = |(now, most): (usize, usize), c| match c {
        '{' | '[' => (now + 1, most.max(now + 1)),
        '}' | ']' => (now.saturating_sub(1), most),
        _ => (now, most),
    };
    let (_, deepest) = printed.chars().fold((0, 0), depth);
    assert!(deepest <= 3, "{deepest} levels: {printed}");
}

fn check_texts(rows: &[(&dyn Display, &str)]) {
    for (value, text) in rows {
        assert_eq!(value.to_string(), *text);
    }
}

#[test]
fn states_and_kinds_have_a_text() {
    check_texts(&[
        (&ConnectionState::Connecting, "connecting"),
        (&ConnectionState::Connected, "connected"),
        (&ConnectionState::Suspended, "suspended"),
        (&ConnectionState::Lost, "lost"),
        (&ConnectionState::RolledBack, "rolled back"),
        (&ConnectionState::AuthFailed, "auth failed"),
        (&ConnectionState::Closed, "closed"),
        (&ErrorKind::NoNode, "no such node"),
        (&ErrorKind::Lost(LostReason::Closed), "the guard is lost: the client was closed"),
        (&ErrorKind::Server(-3), "the server answered with an error: code -3"),
        (&CreateMode::Persistent, "persistent"),
        (&CreateMode::EphemeralSequential, "ephemeral sequential"),
        (&CreateMode::PersistentTtl(Duration::from_secs(5)), "persistent with ttl 5s"),
        (&ParentKind::Container, "container"),
        (&RollbackPolicy::StartAfresh, "start afresh"),
        (&Role::Exclusive, "exclusive"),
        (&Role::Shared, "shared"),
        (&Origin::File, "file"),
        (&RejectionReason::Validation, "validation"),
        (&ServiceType::DynamicSequential, "DYNAMIC_SEQUENTIAL"),
        (&RegistryLayout::Dubbo, "dubbo"),
        (&PickPolicy::PowerOfTwo, "power of two"),
        (&ElectionLayout::LeaderLatch, "leader latch"),
        (&QueueLayout::Curator { lock_path: "/l".to_owned() }, "curator with claims in \"/l\""),
        (&RegistrationStatus::Occupied { session_id: 255 }, "occupied by the session 0xff"),
        (&RegistrationStatus::Announced, "announced"),
    ]);
}

both_backends! {
    async fn a_handle_prints_its_path_and_its_client(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).identity("till-7").connect().await.unwrap();
        let printed = format!("{client:?}");
        let servers = format!("{}{}", server.connect_string(), server.root());
        assert_eq!(printed, format!("Client({servers:?}, \"till-7\", connected (session 1, links lost 0))"));
        let (mutex, lock) = (Mutex::new(&client, "/p/m").unwrap(), RwLock::new(&client, "/p/l").unwrap());
        let limit = SharedLimit::new(&client, "/p/limit", 2).unwrap();
        let queue = Queue::<u32>::new(&client, "/p/q").unwrap();
        for (handle, path) in [
            (&mutex as &dyn Debug, "/p/m"),
            (&Mutex::builder(&client, "/p/m"), "/p/m"),
            (&lock, "/p/l"),
            (&lock.reading(), "/p/l"),
            (&limit, "/p/limit"),
            (&Semaphore::new(&client, "/p/s", 3).unwrap(), "/p/s"),
            (&Semaphore::with_limit(&client, "/p/s", &limit).unwrap(), "/p/s"),
            (&Barrier::new(&client, "/p/b").unwrap(), "/p/b"),
            (&DoubleBarrier::new(&client, "/p/d", 2).unwrap(), "/p/d"),
            (&TimedLease::new(&client, "/p/t", Duration::from_secs(60)).unwrap(), "/p/t"),
            (&Election::new(&client, "/p/e").unwrap(), "/p/e"),
            (&queue, "/p/q"),
            (&queue.dead_letters(), "/p/q"),
            (&SimpleQueue::new(&client, "/p/simple").unwrap(), "/p/simple"),
            (&Registry::new(&client, "/p/r").unwrap(), "/p/r"),
            (&Membership::new(&client, "/p/g").unwrap(), "/p/g"),
            (&Config::<u32>::new(&client, "/p/c").unwrap(), "/p/c"),
            (&ConfigTree::<u32>::new(&client, "/p/tree").unwrap(), "/p/tree"),
            (&Counter::<i64>::new(&client, "/p/n").unwrap(), "/p/n"),
            (&SharedCount::new(&client, "/p/i", 1).unwrap(), "/p/i"),
            (&SharedValue::new(&client, "/p/v", "").unwrap(), "/p/v"),
            (&Line::new(&client, "/p/line", &KIND, "lock-").unwrap(), "/p/line"),
            (&Partitioner::new(&client, "/p/share", ["a"]).unwrap(), "/p/share"),
        ] {
            check_handle(handle, path, &client);
        }
        let multi = MultiLock::new([mutex.clone().into(), lock.reading()]).unwrap();
        assert!(format!("{multi:?}").contains("\"/p/m\"") && format!("{multi:?}").contains("\"/p/l\""));
        assert!(format!("{multi:?}").contains("Exclusive") && format!("{multi:?}").contains("Shared"));
        // Views do not store their client, and guards print their node.
        let kept = KeptNode::new(&client, "/p/kept", "x").unwrap();
        let nodes = (NodeCache::new(&client, "/p/kept").unwrap(), ChildrenCache::new(&client, "/p").unwrap());
        let view = soon(Registry::new(&client, "/p/r").unwrap().service("web")).await.unwrap();
        let tree = TreeCache::new(&client, "/p").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        for value in [&kept as &dyn Debug, &nodes.0, &nodes.1, &tree, &view, &guard] {
            check_short(value);
        }
        assert!(format!("{guard:?}").contains("held"), "{guard:?}");
    }

    async fn public_ids_are_printed_and_payloads_are_not(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).identity("till-7").connect().await.unwrap();
        let mutex = Mutex::new(&client, "/m").unwrap();
        let guard = soon(mutex.acquire()).await.unwrap();
        let holder = soon(mutex.participants()).await.unwrap().remove(0);
        assert_eq!(holder.identity_text().as_deref(), Some("till-7"));
        assert!(format!("{holder:?}").contains("identity: \"till-7\""), "{holder:?}");
        soon(guard.release()).await.unwrap();

        let election = Election::builder(&client, "/e").id("host-7").build().unwrap();
        let leadership = soon(election.campaign()).await.unwrap();
        let leader = soon(election.leader()).await.unwrap().unwrap();
        assert!(format!("{leader:?}").contains("id: Some(\"host-7\")"), "{leader:?}");
        soon(leadership.resign()).await.unwrap();

        let election = Election::builder(&client, "/d").data("planted").build().unwrap();
        let leadership = soon(election.campaign()).await.unwrap();
        let leader = soon(election.leader()).await.unwrap().unwrap();
        let candidates = soon(election.candidates()).await.unwrap();
        assert_eq!((leader.id.as_str(), candidates[0].identity_text()), ("planted", None));
        let shown = format!("{leader:?} {candidates:?} {}", json!([leader, candidates]));
        assert!(!shown.contains("planted") && shown.contains("7 bytes"), "{shown}");
        soon(leadership.resign()).await.unwrap();
    }

    async fn the_contents_of_a_status_page_are_serialized(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let election = Election::builder(&client, "/e").id("host-7").build().unwrap();
        let leadership = soon(election.campaign()).await.unwrap();
        let leader = soon(election.leader()).await.unwrap().unwrap();
        let candidate = soon(election.candidates()).await.unwrap().remove(0);
        let session = format!("{:#x}", client.session_id().unwrap());
        let fence = leadership.fence().as_i64();

        let health = serde_json::to_value(client.health()).unwrap();
        let connection = json!({ "state": "connected", "generation": 1, "suspensions": 0, "rollbacks": 0 });
        assert_eq!(health["connection"], connection);
        assert!(health["lease_left_ms"].as_u64().is_some_and(|left| left > 0), "{health}");
        assert_eq!((&health["guards"], &health["missing_nodes"]), (&json!(1), &json!([])));
        assert_eq!(health["last_error"], Value::Null);
        assert_eq!((&health["session_timeout_ms"], &health["refuses_locks"]), (&json!(8_000), &Value::Null));
        assert!(client.health().to_string().starts_with("connected (session 1, links lost 0), lease "));
        assert_eq!(json!(client.state().current()), connection);

        let leader = json!(leader);
        assert_eq!((&leader["id"], &leader["fence"], &leader["session_id"]), (&json!("host-7"), &json!(fence), &json!(session)));
        assert!(leader["since_ms"].as_u64().is_some_and(|since| since > 1_600_000_000_000), "{leader}");
        let candidate = json!(candidate);
        assert_eq!((&candidate["identity"], &candidate["role"], &candidate["holds"]), (&json!("host-7"), &json!("exclusive"), &json!(true)));
        assert_eq!((&candidate["fence"], &candidate["session_id"]), (&json!(fence), &json!(session)));

        let created = client.create("/own", "abc", CreateMode::Ephemeral).await.unwrap();
        let stat = json!(created.stat);
        assert_eq!((&stat["czxid"], &stat["owner"], &stat["data_length"]), (&json!(created.stat.czxid), &json!(session), &json!(3)));
        assert!(stat["created_ms"].as_u64().is_some_and(|created| created > 1_600_000_000_000), "{stat}");
        let stat = json!(client.exists("/").await.unwrap().unwrap());
        assert_eq!(stat["owner"], Value::Null);

        let instance = Instance::new("orders", "10.0.0.7", 80).id("1").payload(vec!["a"]);
        let written = json!(instance);
        assert_eq!((&written["name"], &written["payload"], &written["serviceType"]), (&json!("orders"), &json!(["a"]), &json!("DYNAMIC")));
    }
}
