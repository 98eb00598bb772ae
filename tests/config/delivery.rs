//! Changes that subscribers receive: V1 to V8.

use crate::limits::{Limits, json, limits, watches};
use crate::support::{PATH, config, next, until, until_stale};
use docent::config::{Change, RejectionReason, SubscribeError};
use docent::node::{Acl, Permissions};
use docent::{Config, ConnectionState, CreateMode, ErrorKind, Subscription};
use docent_battery::{Backend, Rule, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{SHORT_SESSION, builder, connect, soon};
use futures_util::StreamExt;
use std::collections::HashMap;
use std::time::Duration;

/// Writes values as fast as possible. Returns which transaction wrote which value.
async fn write(server: &TestServer, values: std::ops::RangeInclusive<u32>) -> HashMap<i64, u32> {
    let client = connect(server).await;
    let config = Config::<Limits>::builder(&client, PATH).history(0).build().unwrap();
    let mut written = HashMap::new();
    for value in values {
        let snapshot = config.publish(&limits(value)).await.unwrap();
        written.insert(snapshot.revision().unwrap().mzxid, value);
    }
    written
}

/// Follows until `last`. Returns the received values.
async fn follow(mut subscription: Subscription<Limits>, last: u32) -> Vec<(i64, u32)> {
    let mut received = Vec::new();
    loop {
        let snapshot = next(&mut subscription).await;
        received.push((snapshot.revision().unwrap().mzxid, snapshot.per_second));
        if snapshot.per_second == last {
            return received;
        }
    }
}

both_backends! {
    async fn v1_v2_v3_v4_v7_values_arrive_in_order_up_to_the_last_across_links_and_sessions(backend: Backend) {
        const LAST: u32 = 200;
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let mut written = write(&server, 1..=1).await;
        let followers: Vec<_> = {
            let subscription = soon(config(&client).subscribe()).await.unwrap();
            (0..3).map(|_| tokio::spawn(follow(subscription.clone(), LAST))).collect()
        };
        for values in [2..=50, 51..=100, 101..=150, 151..=LAST] {
            let writing = write(&server, values.clone());
            let breaking = async {
                match values.end() {
                    50 | 150 => proxy.reset().await,
                    100 => server.expire(client.session_id().unwrap()).await.unwrap(),
                    _ => {}
                }
            };
            let (more, ()) = tokio::join!(writing, breaking);
            written.extend(more);
            soon(client.state().reached(ConnectionState::Connected)).await;
        }
        for follower in followers {
            let received = soon(follower).await.unwrap();
            // V1 and V7: values arrive in the order in which they were written. V2: no other values arrive.
            // V3: the last value arrives. V4: some values may be missing.
            assert!(received.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{received:?}");
            assert!(received.iter().all(|(mzxid, value)| written.get(mzxid) == Some(value)), "{received:?}");
            assert_eq!(received.last().unwrap().1, LAST);
        }
    }

    async fn v3_a_deletion_is_reported_and_the_last_good_value_stays(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (config, operator) = (config(&client), config(&other));
        soon(operator.publish(&limits(1))).await.unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        assert!(!subscription.is_missing());
        soon(operator.delete()).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Deleted))));
        assert!(subscription.is_missing() && subscription.current().per_second == 1);
        // The same value in a new node is a change.
        soon(operator.publish(&limits(1))).await.unwrap();
        assert_eq!(next(&mut subscription).await.revision().unwrap().version, 0);
        assert!(!subscription.is_missing());
        // The value is deleted and published while the client is disconnected, and deleted while its session
        // ends.
        soon(operator.delete()).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Deleted))));
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(operator.publish(&limits(2))).await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 2);
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(operator.delete()).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Deleted))));
    }

    async fn a_value_that_never_existed_is_missing_and_not_deleted(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let operator = config(&other);
        let patient = Config::builder(&client, PATH).default_value(limits(9)).build().unwrap();
        let mut subscription = soon(patient.subscribe()).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Missing))));
        assert!(subscription.is_missing() && subscription.current().per_second == 9);
        soon(operator.publish(&limits(1))).await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 1);
        soon(operator.delete()).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Deleted))));
        // A later subscriber of the same cache receives the same change.
        let mut later = soon(patient.subscribe()).await.unwrap();
        assert!(matches!(soon(later.changed()).await, Some(Ok(Change::Deleted))));
    }

    async fn v5_a_disconnected_value_is_stale_and_reports_for_how_long(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let operator = config(&connect(&server).await);
        soon(operator.publish(&limits(1))).await.unwrap();
        let subscription = soon(config(&client).subscribe()).await.unwrap();
        until_stale(&subscription, false).await;
        assert_eq!(subscription.stale_for(), None);
        proxy.cut().await;
        until_stale(&subscription, true).await;
        let first = subscription.stale_for().unwrap();
        soon(async { while subscription.stale_for().unwrap() < first + Duration::from_millis(20) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        } }).await;
        soon(operator.publish(&limits(2))).await.unwrap();
        assert_eq!(subscription.current().per_second, 1);
        proxy.heal().await.unwrap();
        until_stale(&subscription, false).await;
        until(&subscription, 2).await;
        assert!(subscription.current().age() < docent_tests::PATIENCE);
    }

    async fn v6_a_publish_whose_reply_is_lost_is_applied_once(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        let lost = proxy.add(Rule::on(OpCode::Multi).swallow_reply());
        let publish = tokio::spawn({ let config = config.clone(); async move { config.publish(&limits(2)).await } });
        soon(lost.fired()).await;
        proxy.reset().await;
        let published = soon(publish).await.unwrap().unwrap();
        let received = next(&mut subscription).await;
        assert_eq!((received.revision(), received.per_second), (published.revision(), 2));
        assert_eq!(published.revision().unwrap().version, 1);
        // The publisher can use the returned revision for its next step.
        soon(config.publish_if(&limits(3), &published)).await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 3);
    }

    async fn v8_bad_values_are_reported_and_counted_and_the_last_good_one_stays(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        let mut bad = vec![
            (String::new(), RejectionReason::Codec),
            ("{\"per_second\":".to_owned(), RejectionReason::Codec),
            ("\u{feff}{\"per_second\":1}".to_owned(), RejectionReason::Codec),
            ("{\"per_second\":\"1\"}".to_owned(), RejectionReason::Codec),
            ("{\"per_second\":9007199254740993}".to_owned(), RejectionReason::Codec),
            ("{\"per_second\":1,\"per_second\":2}".to_owned(), RejectionReason::Codec),
            ("{}".to_owned(), RejectionReason::Codec),
            ("[".repeat(100_000), RejectionReason::Codec),
            (json(0), RejectionReason::Validation),
        ];
        bad.push((format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500)), RejectionReason::Codec));
        let count = u64::try_from(bad.len()).unwrap();
        for (data, reason) in bad {
            other.set(PATH, data.clone(), None).await.unwrap();
            let Some(Ok(Change::Refused(refusal))) = soon(subscription.changed()).await else { panic!("{data}") };
            assert_eq!(refusal.reason(), reason, "{data}");
            assert_eq!(subscription.rejection().unwrap().revision(), refusal.revision());
            assert_eq!(subscription.current().per_second, 1);
        }
        assert_eq!(subscription.refused(), count);
        other.set(PATH, vec![0xff, 0xfe, 0], None).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Refused(_)))));
        other.set(PATH, json(2), None).await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 2);
        assert!(subscription.rejection().is_none());
        assert!(!subscription.is_stale());
    }

    async fn an_initial_error_is_reported(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        assert!(matches!(soon(config.subscribe()).await, Err(SubscribeError::Missing { .. })));
        client.create("/config", "", CreateMode::Persistent).await.unwrap();
        client.create(PATH, "[", CreateMode::Persistent).await.unwrap();
        assert!(matches!(soon(config.subscribe()).await, Err(SubscribeError::Refused { .. })));
        // With a default a subscription can start, and it reports the rejection.
        let tolerant = Config::builder(&client, PATH).default_value(limits(9)).build().unwrap();
        let mut subscription = soon(tolerant.subscribe()).await.unwrap();
        assert!(subscription.current().per_second == 9 && subscription.current().is_provisional());
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Refused(_)))));
        // The default does not count as a published value.
        let default = subscription.current();
        assert!(tolerant.publish_if(&limits(10), &default).await.is_err());
        soon(tolerant.delete()).await.unwrap();
        assert!(matches!(soon(subscription.changed()).await, Some(Ok(Change::Deleted))));
        soon(tolerant.publish_if(&limits(10), &default)).await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 10);
    }

    async fn a_value_that_may_not_be_read_is_an_error(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        soon(config(&other).publish(&limits(1))).await.unwrap();
        other.set_acl(PATH, [Acl::digest("user", "password", Permissions::ALL)], None).await.unwrap();
        let Err(SubscribeError::Core(error)) = soon(config(&client).subscribe()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::NoAuth);
        let config = Config::builder(&client, PATH).default_value(limits(9)).build().unwrap();
        let subscription = soon(config.subscribe()).await.unwrap();
        assert_eq!(subscription.current().per_second, 9);
        assert!(subscription.is_stale() && subscription.last_error().is_some());
    }

    async fn a_subscriber_that_waits_for_a_first_value_receives_it(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let config = config(&client);
        assert!(matches!(soon(config.subscribe()).await, Err(SubscribeError::Missing { .. })));
        let mut waiting = Box::pin(config.subscribe_when_published());
        assert!(futures_util::poll!(&mut waiting).is_pending());
        let started = server.front().trace().len();
        other.create("/config", "", CreateMode::Persistent).await.unwrap();
        // An invalid value does not count as published.
        other.create(PATH, json(0), CreateMode::Persistent).await.unwrap();
        let refused = async { while !matches!(config.subscribe().await, Err(SubscribeError::Refused { .. })) { docent_tests::pause().await; } };
        soon(async { tokio::select! { () = refused => {}, _ = &mut waiting => panic!("an invalid value was returned") } }).await;
        soon(crate::support::config(&other).publish(&limits(2))).await.unwrap();
        let subscription = soon(waiting).await.unwrap();
        assert_eq!(subscription.current().per_second, 2);
        assert!(server.front().trace().len() - started < 200, "no subscription polls");
        // If a value exists, the call returns immediately. After the drop no watch is left.
        let second = soon(config.subscribe_when_published()).await.unwrap();
        drop((subscription, second));
        soon(crate::support::config(&other).delete()).await.unwrap();
        {
            let mut waiting = Box::pin(config.subscribe_when_published());
            assert!(futures_util::poll!(&mut waiting).is_pending());
        }
        soon(async { while watches(&server).is_some_and(|watches| watches > 0) { client.sync("/").await.unwrap(); } }).await;
        let waiting = tokio::spawn({ let config = config.clone(); async move { config.subscribe_when_published().await.err() } });
        soon(client.close()).await;
        assert!(matches!(soon(waiting).await.unwrap(), Some(SubscribeError::Core(error)) if error.kind() == ErrorKind::Closed));
    }

    async fn waiting_for_a_first_value_survives_an_outage(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let limit = Duration::from_millis(200);
        let client = builder(&server, proxy.connect_string()).operation_timeout(limit).connect().await.unwrap();
        let operator = config(&connect(&server).await);
        proxy.cut().await;
        let config = config(&client);
        let mut waiting = Box::pin(config.subscribe_when_published());
        assert!(tokio::time::timeout(limit * 3, &mut waiting).await.is_err());
        soon(operator.publish(&limits(1))).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(soon(waiting).await.unwrap().current().per_second, 1);
    }

    async fn a_session_that_ends_for_good_changes_nothing_but_staleness(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).session_timeout(SHORT_SESSION).connect().await.unwrap();
        let operator = config(&connect(&server).await);
        soon(operator.publish(&limits(1))).await.unwrap();
        let mut subscription = soon(config(&client).subscribe()).await.unwrap();
        let generation = client.state().current().generation;
        proxy.cut().await;
        soon(client.state().reached(ConnectionState::Lost)).await;
        assert_eq!(subscription.current().per_second, 1);
        soon(operator.publish(&limits(2))).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(next(&mut subscription).await.per_second, 2);
        assert!(client.state().current().generation > generation);
    }

    async fn subscriptions_of_a_client_share_one_watch_and_leave_none(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let mut subscriptions = Vec::new();
        for _ in 0..20 {
            subscriptions.push(soon(config.subscribe()).await.unwrap());
            // Another `Config` shares the client's cache, and the server has only one watch.
            subscriptions.push(soon(crate::support::config(&client).subscribe()).await.unwrap());
        }
        if let Some(watches) = watches(&server) {
            assert_eq!(watches, 1);
        }
        soon(crate::support::config(&other).publish(&limits(2))).await.unwrap();
        for subscription in &mut subscriptions {
            assert_eq!(next(subscription).await.per_second, 2);
        }
        drop(subscriptions);
        soon(async { while watches(&server).is_some_and(|watches| watches > 0) { client.sync("/").await.unwrap(); } }).await;
        // A new subscription can start.
        assert_eq!(soon(config.subscribe()).await.unwrap().current().per_second, 2);
    }

    async fn a_subscription_ends_with_its_client_and_keeps_its_value(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        let mut stream = subscription.clone();
        let waiting = tokio::spawn(async move { stream.next().await.is_none() });
        docent_tests::pause().await;
        soon(client.close()).await;
        assert!(soon(waiting).await.unwrap());
        assert!(soon(subscription.changed()).await.is_none());
        assert!(subscription.is_stale() && subscription.current().per_second == 1);
        let Err(SubscribeError::Core(error)) = soon(config.subscribe()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Closed);
    }

    async fn a_dropped_wait_misses_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        for value in 2..=20 {
            let waiting = tokio::time::timeout(Duration::from_micros(u64::from(value) * 50), subscription.changed()).await;
            assert!(waiting.is_err(), "there is no published value");
            soon(config.publish(&limits(value))).await.unwrap();
            assert_eq!(next(&mut subscription).await.per_second, value);
        }
    }

    async fn holding_a_snapshot_blocks_no_one(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let subscription = soon(config.subscribe()).await.unwrap();
        let held: Vec<_> = (0..100).map(|_| subscription.current()).collect();
        soon(config.publish(&limits(2))).await.unwrap();
        until(&subscription, 2).await;
        assert!(held.iter().all(|snapshot| snapshot.per_second == 1));
    }

    async fn lost_replies_only_delay_a_subscription(backend: Backend) {
        let server = backend.start().await;
        let (other, proxy) = (connect(&server).await, server.proxy().await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let operator = config(&other);
        soon(operator.publish(&limits(1))).await.unwrap();
        for (value, rule) in [
            (2, Rule::on(OpCode::GetData).reset_before()),
            (3, Rule::on(OpCode::GetData).reset_after()),
            (4, Rule::on(OpCode::GetData).nth(2).reset_after()),
        ] {
            proxy.add(rule);
            let mut subscription = soon(config(&client).subscribe()).await.unwrap();
            soon(operator.publish(&limits(value))).await.unwrap();
            assert_eq!(next(&mut subscription).await.per_second, value);
        }
    }
}
