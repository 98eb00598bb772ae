//! Shared values and numbers, in Curator's layout.

use crate::limits::watches;
use docent::config::{Change, PublishError, RejectionReason, SharedCount, SubscribeError};
use docent::locks::SharedLimit;
use docent::{CreateMode, ErrorKind, SharedValue};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, soon};

both_backends! {
    async fn the_first_seed_wins_and_is_raw_bytes(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (value, late) = (SharedValue::new(&client, "/a/b", "one").unwrap(), SharedValue::new(&other, "/a/b", "two").unwrap());
        assert!(client.exists("/a/b").await.unwrap().is_none(), "nothing is written before the first use");
        assert_eq!(**soon(value.get()).await.unwrap(), *b"one");
        assert_eq!(**soon(late.get()).await.unwrap(), *b"one");
        let node = client.get("/a/b").await.unwrap();
        assert_eq!((node.data, node.stat.owner), ("one".into(), None));
        // Of several concurrent initial values, one is stored.
        let values: Vec<_> = (0..4).map(|n| SharedCount::new(&client, "/number", n).unwrap()).collect();
        let tasks: Vec<_> = values.iter().cloned().map(|value| tokio::spawn(async move { *value.get().await.unwrap().value() })).collect();
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(soon(task).await.unwrap());
        }
        assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
        assert_eq!(client.get("/number").await.unwrap().stat.version, 0);
    }

    async fn numbers_are_those_of_curators_shared_count(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let count = SharedCount::new(&client, "/count", 3).unwrap();
        soon(count.set(258)).await.unwrap();
        assert_eq!(client.get("/count").await.unwrap().data.as_ref(), [0, 0, 1, 2]);
        for (data, value) in [(vec![0, 0, 0, 5, 9, 9], 5), (vec![255; 4], -1), (vec![0x80, 0, 0, 0], i32::MIN)] {
            client.set("/count", data, None).await.unwrap();
            assert_eq!(*soon(count.get()).await.unwrap().value(), value);
        }
        for data in [vec![], vec![0, 0, 1]] {
            client.set("/count", data, None).await.unwrap();
            let Err(PublishError::Unreadable(refusal)) = soon(count.get()).await else { panic!() };
            assert_eq!(refusal.reason(), RejectionReason::Codec);
        }
        assert!(matches!(soon(count.subscribe()).await, Err(SubscribeError::Refused { .. })));
        // A shared limit and a shared count at the same path are the same number.
        let limit = SharedLimit::new(&client, "/limit", 4).unwrap();
        let count = SharedCount::new(&client, "/limit", 2).unwrap();
        soon(count.set(9)).await.unwrap();
        assert_eq!(soon(limit.get()).await.unwrap(), 9);
        soon(limit.set(11)).await.unwrap();
        assert_eq!(*soon(count.get()).await.unwrap().value(), 11);
        soon(count.set(-5)).await.unwrap();
        assert_eq!(soon(limit.get()).await.unwrap(), 0);
        assert!(client.children("/limit").await.unwrap().names.is_empty(), "a shared limit has no history");
    }

    async fn concurrent_setters_are_each_seen_in_their_turn(backend: Backend) {
        const CLIENTS: i32 = 4;
        const ROUNDS: i32 = 10;
        let server = backend.start().await;
        let mut setters = Vec::new();
        for _ in 0..CLIENTS {
            let count = SharedCount::new(&connect(&server).await, "/count", 0).unwrap();
            setters.push(tokio::spawn(async move {
                let mut done = 0;
                while done < ROUNDS {
                    let seen = count.get().await.unwrap();
                    match count.compare_and_set(&seen, *seen.value() + 1).await {
                        Ok(_) => done += 1,
                        Err(PublishError::Conflict) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }));
        }
        for setter in setters {
            soon(setter).await.unwrap();
        }
        let client = connect(&server).await;
        assert_eq!(*soon(SharedCount::new(&client, "/count", 0).unwrap().get()).await.unwrap().value(), CLIENTS * ROUNDS);
        assert_eq!(client.get("/count").await.unwrap().stat.version, CLIENTS * ROUNDS);
    }

    async fn a_shared_value_is_followed_through_reconnects_and_re_creation(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let value = SharedValue::new(&client, "/value", "seed").unwrap();
        let mut subscription = soon(value.subscribe()).await.unwrap();
        let other_value = SharedValue::new(&other, "/value", "").unwrap();
        assert_eq!(subscription.current().value(), "seed");
        let mut expect_value = async |wanted: &str| match soon(subscription.changed()).await {
            Some(Ok(Change::Value(value))) => assert_eq!(value.value(), wanted),
            other => panic!("{other:?}"),
        };
        soon(other_value.set("one")).await.unwrap();
        expect_value("one").await;
        // The value is changed while the link is cut.
        proxy.cut().await;
        soon(other_value.set("two")).await.unwrap();
        proxy.heal().await.unwrap();
        expect_value("two").await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(other_value.set("three")).await.unwrap();
        expect_value("three").await;
        // A node that is deleted and re-created in one transaction is still followed.
        other.transaction().delete("/value", None).create("/value", "four", CreateMode::Persistent).commit().await.unwrap();
        expect_value("four").await;
        soon(value.set("five")).await.unwrap();
        expect_value("five").await;
        drop(subscription);
        soon(async { while watches(&server).is_some_and(|watches| watches > 0) { other.sync("/").await.unwrap(); } }).await;
    }

    async fn a_seen_value_is_replaced_only_once(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (value, other_value) = (SharedValue::new(&client, "/value", "a").unwrap(), SharedValue::new(&other, "/value", "a").unwrap());
        let seen = soon(value.get()).await.unwrap();
        let next = soon(other_value.compare_and_set(&seen, "b")).await.unwrap();
        assert!(matches!(soon(value.compare_and_set(&seen, "c")).await, Err(PublishError::Conflict)));
        soon(value.compare_and_set(&next, "c")).await.unwrap();
        assert_eq!(client.get("/value").await.unwrap().data, "c");
        soon(client.close()).await;
        let Err(PublishError::Core(error)) = soon(value.get()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
}
