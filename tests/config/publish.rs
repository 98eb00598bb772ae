//! Operations of publishers, and their results.

use crate::limits::{Limits, in_range, json, limits};
use crate::support::{PATH, config};
use docent::config::{Origin, PublishError, RejectionReason, SubscribeError};
use docent::{Config, CreateMode, ErrorKind};
use docent_battery::{Backend, FrameKind, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};

both_backends! {
    async fn a_published_value_is_json_in_a_persistent_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        assert!(soon(config.get()).await.unwrap().is_none());
        let published = soon(config.publish(&limits(7))).await.unwrap();
        assert_eq!((published.value(), published.origin()), (&limits(7), Origin::Server));
        let node = client.get(PATH).await.unwrap();
        assert_eq!((node.data, node.stat.owner), (json(7).into(), None));
        let revision = published.revision().unwrap();
        assert_eq!((revision.czxid, revision.mzxid, revision.version), (node.stat.czxid, node.stat.mzxid, 0));
        assert_eq!(revision.modified, node.stat.modified);
        let read = soon(config.get()).await.unwrap().unwrap();
        assert_eq!((read.revision(), read.per_second), (published.revision(), 7));
    }

    async fn publish_if_requires_the_seen_revision(backend: Backend) {
        let server = backend.start().await;
        let (config, other) = (config(&connect(&server).await), config(&connect(&server).await));
        let first = soon(config.publish_new(&limits(1))).await.unwrap();
        assert!(matches!(soon(other.publish_new(&limits(2))).await, Err(PublishError::Conflict)));
        let second = soon(other.publish_if(&limits(2), &first)).await.unwrap();
        assert!(matches!(soon(config.publish_if(&limits(3), &first)).await, Err(PublishError::Conflict)));
        assert_eq!(soon(config.get()).await.unwrap().unwrap().per_second, 2);
        soon(config.publish_if(&limits(3), &second)).await.unwrap();
        // The same version of another node is a different revision.
        let third = soon(config.get()).await.unwrap().unwrap();
        soon(config.delete()).await.unwrap();
        for value in [1, 2, 3] {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        let again = soon(config.get()).await.unwrap().unwrap();
        assert_eq!(again.revision().unwrap().version, third.revision().unwrap().version);
        assert!(matches!(soon(config.publish_if(&limits(4), &third)).await, Err(PublishError::Conflict)));
        soon(config.publish_if(&limits(4), &again)).await.unwrap();
        soon(config.delete()).await.unwrap();
        assert!(matches!(soon(config.publish_if(&limits(5), &again)).await, Err(PublishError::Conflict)));
    }

    async fn concurrent_updates_are_all_counted(backend: Backend) {
        const CLIENTS: u32 = 4;
        const UPDATES: u32 = 10;
        let server = backend.start().await;
        let client = connect(&server).await;
        let mut publishers = Vec::new();
        for _ in 0..CLIENTS {
            let config = config(&connect(&server).await);
            publishers.push(tokio::spawn(async move {
                for _ in 0..UPDATES {
                    let now = |now: Option<Limits>| Some(limits(now.map_or(0, |now| now.per_second) + 1));
                    config.update(now).await.unwrap().unwrap();
                }
            }));
        }
        for publisher in publishers {
            soon(publisher).await.unwrap();
        }
        let node = client.get(PATH).await.unwrap();
        assert_eq!(node.data, json(CLIENTS * UPDATES));
        assert_eq!(node.stat.version, i32::try_from(CLIENTS * UPDATES).unwrap() - 1);
    }

    async fn an_update_may_leave_the_value_unchanged(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        let double = |now: Option<Limits>| Some(limits(now?.per_second * 2));
        assert!(soon(config.update(double)).await.unwrap().is_none());
        assert!(client.exists(PATH).await.unwrap().is_none());
        soon(config.publish(&limits(4))).await.unwrap();
        assert_eq!(soon(config.update(double)).await.unwrap().unwrap().per_second, 8);
        // `update` does not overwrite an unreadable value.
        client.set(PATH, "[", None).await.unwrap();
        let refused = soon(config.update(double)).await;
        assert!(matches!(refused, Err(PublishError::Unreadable(refusal)) if refusal.revision().unwrap().version == 2));
        // A plain `publish` replaces an unreadable value.
        soon(config.publish(&limits(5))).await.unwrap();
        assert_eq!(soon(config.get()).await.unwrap().unwrap().per_second, 5);
    }

    async fn a_value_that_readers_would_reject_is_not_published(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        for value in [0, 1_000_001] {
            let Err(PublishError::Refused(refusal)) = soon(config.publish(&limits(value))).await else { panic!() };
            assert_eq!(refusal.reason(), RejectionReason::Validation);
            assert_eq!(refusal.detail(), in_range(&limits(value)).unwrap_err());
        }
        assert!(client.exists(PATH).await.unwrap().is_none());
        let numbers = Config::<f64>::new(&client, "/number").unwrap();
        assert!(matches!(soon(numbers.publish(&f64::NAN)).await, Err(PublishError::Refused(_))));
        assert!(client.exists("/number").await.unwrap().is_none());
    }

    async fn a_value_over_the_limit_is_refused_and_nothing_sent(backend: Backend) {
        let server = backend.start().await;
        let client = builder(&server, server.connect_string()).max_request(100_000).connect().await.unwrap();
        let config = Config::<String>::new(&client, "/text").unwrap();
        let Err(PublishError::Core(error)) = soon(config.publish(&"x".repeat(200_000))).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(client.exists("/text").await.unwrap().is_none());
        // A value that is too large to be sent together with its successor can be replaced, but is not
        // recorded in the history.
        soon(config.publish(&"x".repeat(90_000))).await.unwrap();
        soon(config.publish(&"y".repeat(90_000))).await.unwrap();
        assert!(soon(config.history()).await.unwrap().is_empty());
        soon(config.publish(&"z".to_owned())).await.unwrap();
        assert!(soon(config.history()).await.unwrap().is_empty());
        soon(config.publish(&"a".to_owned())).await.unwrap();
        assert_eq!(soon(config.history()).await.unwrap().len(), 1);
    }

    async fn deleting_takes_the_history_with_it(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        assert!(!soon(config.delete()).await.unwrap());
        for value in [1, 2, 3] {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        assert!(soon(config.delete()).await.unwrap());
        assert!(client.exists(PATH).await.unwrap().is_none());
        assert!(!soon(config.delete()).await.unwrap());
        // If another client has created child nodes, the delete changes nothing.
        soon(config.publish(&limits(1))).await.unwrap();
        client.create(&format!("{PATH}/theirs"), "", CreateMode::Persistent).await.unwrap();
        let Err(PublishError::Core(error)) = soon(config.delete()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::NotEmpty);
        assert_eq!(soon(config.get()).await.unwrap().unwrap().per_second, 1);
    }

    async fn a_publish_over_the_clients_own_last_value_is_one_request(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let requests = |before: usize| {
            let trace = proxy.trace();
            let requests = trace[before..].iter().filter(|frame| frame.kind == FrameKind::Request);
            requests.filter_map(|frame| frame.op).filter(|op| *op != OpCode::Ping).collect::<Vec<_>>()
        };
        for (length, reads) in [(0, 1), (3, 2)] {
            let path = format!("/number-{length}");
            let config = Config::<u32>::builder(&client, &path).history(length).build().unwrap();
            soon(config.publish(&1)).await.unwrap();
            let before = proxy.trace().len();
            soon(config.publish(&2)).await.unwrap();
            assert_eq!(requests(before).len(), reads + 1, "another client may have written as well");
            for value in 3..9 {
                let before = proxy.trace().len();
                let published = soon(config.publish(&value)).await.unwrap();
                assert_eq!(requests(before), [OpCode::Multi]);
                let node = client.get(&path).await.unwrap();
                assert_eq!(published.revision().unwrap(), soon(config.get()).await.unwrap().unwrap().revision().unwrap());
                assert_eq!(node.data, value.to_string());
            }
            // A value written by another client is detected, and is recorded in the history.
            client.set(&path, "100", None).await.unwrap();
            let before = proxy.trace().len();
            soon(config.publish(&9)).await.unwrap();
            assert_eq!(requests(before).len(), 1 + reads + 1);
            let past: Vec<_> = soon(config.history()).await.unwrap().into_iter().map(|past| past.value.unwrap()).collect();
            assert_eq!(past, [100, 7, 6][..length]);
        }
    }

    async fn an_update_after_a_change_by_another_client_starts_from_its_value(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (config, other) = (config(&client), config(&other));
        for value in 1..5 {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        let (seen, add) = (soon(config.get()).await.unwrap().unwrap(), |now: Option<Limits>| Some(limits(now?.per_second + 10)));
        soon(other.update(add)).await.unwrap();
        assert_eq!(soon(config.update(add)).await.unwrap().unwrap().per_second, 24);
        assert!(matches!(soon(config.publish_if(&limits(1), &seen)).await, Err(PublishError::Conflict)));
        assert!(soon(config.update(|now| now.filter(|now| now.per_second != 24))).await.unwrap().is_none());
        let seen = soon(config.publish(&limits(30))).await.unwrap();
        soon(other.publish_if(&limits(31), &seen)).await.unwrap();
        assert!(matches!(soon(config.publish_if(&limits(1), &seen)).await, Err(PublishError::Conflict)));
    }

    async fn a_node_re_created_with_the_same_version_is_not_mistaken_for_the_previous_one(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (config, other) = (config(&client), config(&other));
        for value in 1..5 {
            soon(config.publish(&limits(value))).await.unwrap();
        }
        soon(other.delete()).await.unwrap();
        for value in 11..15 {
            soon(other.publish(&limits(value))).await.unwrap();
        }
        let published = soon(config.publish(&limits(5))).await.unwrap();
        assert_eq!(published.revision(), soon(other.get()).await.unwrap().unwrap().revision());
        let past: Vec<_> = soon(config.history()).await.unwrap().into_iter().map(|past| past.value.unwrap().per_second).collect();
        assert_eq!(past, [14, 13, 12, 11]);
    }

    async fn an_invalid_value_is_returned_to_callers_of_get_as_an_error(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/config", "", CreateMode::Persistent).await.unwrap();
        client.create(PATH, json(0), CreateMode::Persistent).await.unwrap();
        let Err(SubscribeError::Refused { rejection: refusal, .. }) = soon(config(&client).get()).await else { panic!() };
        assert_eq!((refusal.reason(), refusal.revision().unwrap().version), (RejectionReason::Validation, 0));
    }
}
