//! Leases on a name for a limited time.

use docent::locks::{AcquireError, Owner, TimedLease};
use docent::{CreateMode, ErrorKind};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, child_count, connect, refuses_bad_paths, soon, until};
use std::time::{Duration, SystemTime};

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_secs(2);

both_backends! {
    async fn a_lease_is_held_until_it_ends_or_is_given_back(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (own, peer) = (TimedLease::new(&client, "/l", LONG).unwrap(), TimedLease::new(&other, "/l", LONG).unwrap());
        let obtained = soon(own.try_obtain()).await.unwrap().unwrap();
        assert!(obtained.is_valid() && obtained.slot() == 0);
        assert!(obtained.remaining() > LONG - Duration::from_secs(60) && obtained.end() <= SystemTime::now() + LONG);
        assert!(soon(peer.try_obtain()).await.unwrap().is_none());
        // The same identity obtains the lease again, also through a clone or after a restart.
        assert!(soon(own.clone().try_obtain()).await.unwrap().is_some());
        assert!(!soon(peer.give_back()).await.unwrap());
        assert!(soon(own.give_back()).await.unwrap() && !soon(own.give_back()).await.unwrap());
        assert!(soon(peer.try_obtain()).await.unwrap().is_some());
        assert!(soon(own.try_obtain()).await.unwrap().is_none());
        // The lease outlives the session.
        soon(other.close()).await;
        assert!(soon(own.try_obtain()).await.unwrap().is_none());
        until(async || client.children("/l").await.unwrap().names == ["lease_holder"]).await;
    }

    async fn a_lease_is_free_after_its_end(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (short, peer) = (TimedLease::new(&client, "/l", SHORT).unwrap(), TimedLease::new(&other, "/l", LONG).unwrap());
        let obtained = soon(short.try_obtain()).await.unwrap().unwrap();
        let next = soon(async {
            loop {
                let was_valid = obtained.is_valid();
                if let Some(next) = peer.try_obtain().await.unwrap() {
                    assert!(!was_valid || !obtained.is_valid());
                    return next;
                }
            }
        }).await;
        assert!(next.is_valid() && obtained.remaining().is_zero());
    }

    async fn there_are_as_many_holders_as_slots(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let lease = || TimedLease::new(&client, "/l", LONG).unwrap().slots(3);
        let leases = [lease(), lease(), lease(), lease()];
        let mut slots = Vec::new();
        for lease in &leases {
            slots.push(soon(lease.try_obtain()).await.unwrap().map(|obtained| obtained.slot()));
        }
        assert_eq!(slots, [Some(0), Some(1), Some(2), None]);
        assert!(soon(leases[1].give_back()).await.unwrap());
        assert_eq!(soon(leases[2].try_obtain()).await.unwrap().unwrap().slot(), 2, "not the lease's slot");
        assert_eq!(soon(leases[3].try_obtain()).await.unwrap().unwrap().slot(), 1);
    }

    async fn a_client_that_loses_the_race_for_its_old_slot_takes_a_free_one(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = (connect(&server).await, connect(&server).await);
        let holder = |name: &str, end: &str| format!(r#"{{"version": 1, "holder": "{name}", "end": "{end}"}}"#);
        let node = "/l/0/lease_holder";
        kazoo.create(node, holder("us", "2001-01-01T00:00:00"), CreateMode::Persistent).await.unwrap();
        let lock = kazoo.create(&format!("/l/0/{}__lock__", "a".repeat(32)), "", CreateMode::EphemeralSequential).await.unwrap();
        let lease = TimedLease::new(&client, "/l", LONG).unwrap().identity("us").slots(2);
        let obtaining = tokio::spawn({ let lease = lease.clone(); async move { lease.try_obtain().await } });
        // The client has read its old lease and waits for the slot's lock.
        until(async || kazoo.children("/l/0").await.unwrap().names.len() == 3).await;
        kazoo.set(node, holder("kazoo", "2999-01-01T00:00:00"), None).await.unwrap();
        kazoo.delete(&lock.path, None).await.unwrap();
        let obtained = soon(obtaining).await.unwrap().unwrap().expect("the other slot is free");
        assert_eq!(obtained.slot(), 1);
        assert_eq!(soon(lease.try_obtain()).await.unwrap().unwrap().slot(), 1, "not the lease's slot");
    }

    async fn concurrent_attempts_obtain_a_lease_once(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        // All leases share one owner, because the lease's lock must not be re-entered.
        let obtained = Owner::scope(async {
            let leases: Vec<_> = (0..10).map(|_| TimedLease::new(&client, "/l", LONG).unwrap()).collect();
            soon(futures_util::future::join_all(leases.iter().map(TimedLease::try_obtain))).await
        }).await;
        assert_eq!(obtained.into_iter().filter(|obtained| obtained.as_ref().unwrap().is_some()).count(), 1);
    }

    async fn a_lost_reply_neither_hides_nor_doubles_a_lease(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for path in ["/l/lease_holder", "/l/_c_"] {
            for after in [true, false] {
                let request = Rule::on(OpCode::Multi).path(move |at| at.contains(path));
                let request = if path.ends_with("_c_") { Rule::on(OpCode::Create2).path(move |at| at.contains(path)) } else { request };
                let fired = proxy.add(if after { request.reset_after() } else { request.reset_before() });
                let lease = TimedLease::new(&client, "/l", LONG).unwrap();
                assert!(soon(lease.try_obtain()).await.unwrap().is_some());
                assert!(fired.has_fired(), "{path}");
                let peer = TimedLease::new(&other, "/l", LONG).unwrap();
                assert!(soon(peer.try_obtain()).await.unwrap().is_none());
                assert!(soon(lease.give_back()).await.unwrap());
            }
        }
        until(async || child_count(&other, "/l").await == 0).await;
    }

    async fn kazoos_format_and_lock_count(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = (connect(&server).await, connect(&server).await);
        let holder = |version: u32, end: &str| format!(r#"{{"version": {version}, "holder": "kazoo", "end": "{end}"}}"#);
        kazoo.create("/l/lease_holder", holder(1, "2999-01-01T00:00:00"), CreateMode::Persistent).await.unwrap();
        let lease = TimedLease::new(&client, "/l", LONG).unwrap().identity("us");
        assert!(soon(lease.try_obtain()).await.unwrap().is_none());
        for unknown in [holder(2, "2001-01-01T00:00:00"), "nonsense".to_owned()] {
            kazoo.set("/l/lease_holder", unknown, None).await.unwrap();
            assert!(soon(lease.try_obtain()).await.unwrap().is_none());
        }
        kazoo.set("/l/lease_holder", holder(1, "2001-01-01T00:00:00"), None).await.unwrap();
        // While kazoo holds the lease's lock, the client waits.
        let lock = kazoo.create(&format!("/l/{}__lock__", "a".repeat(32)), "", CreateMode::EphemeralSequential).await.unwrap();
        let impatient = client.with_operation_timeout(Duration::from_millis(300));
        let waiting = TimedLease::new(&impatient, "/l", LONG).unwrap();
        let error = soon(waiting.try_obtain()).await.unwrap_err();
        assert!(matches!(error, AcquireError::Core(error) if error.kind() == ErrorKind::Timeout));
        kazoo.delete(&lock.path, None).await.unwrap();
        assert!(soon(lease.try_obtain()).await.unwrap().is_some());
        let data = client.get("/l/lease_holder").await.unwrap().data;
        let text = String::from_utf8(data.to_vec()).unwrap();
        assert!(text.contains("\"version\":1") && text.contains("\"holder\":\"us\"") && text.contains("\"end\":\"20"), "{text}");
    }

    async fn bad_input_is_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        refuses_bad_paths(|path| TimedLease::new(&client, path, LONG).map(drop));
        for duration in [Duration::from_millis(999), Duration::MAX] {
            let error = TimedLease::new(&client, "/l", duration).unwrap_err();
            assert!(error.to_string().contains("from 1 s to 100 years"), "{error}");
        }
        soon(client.close()).await;
        assert!(soon(TimedLease::new(&client, "/l", LONG).unwrap().try_obtain()).await.is_err());
    }
}
