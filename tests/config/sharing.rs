//! Many configurations of one path in one client share one read and one watch.

use crate::limits::{Limits, json, limits};
use crate::support::{PATH, config, next, until};
use docent::config::SubscribeError;
use docent::node::{Acl, Permissions};
use docent::{Client, Config, ErrorKind, Subscription};
use docent_battery::{Backend, Direction, Flow, FrameKind, Traced, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::task::Poll;

const SESSIONS: usize = 5;
const CONFIGS: usize = 10;

/// Returns the number of requests by operation, without pings.
fn requests(trace: &[Traced]) -> BTreeMap<String, usize> {
    let requests = trace.iter().filter(|frame| frame.kind == FrameKind::Request);
    let mut counts = BTreeMap::new();
    for op in requests.filter_map(|frame| frame.op).filter(|op| *op != OpCode::Ping) {
        *counts.entry(format!("{op:?}")).or_default() += 1;
    }
    counts
}

fn counts<const N: usize>(counts: [(OpCode, usize); N]) -> BTreeMap<String, usize> {
    counts.into_iter().map(|(op, count)| (format!("{op:?}"), count)).collect()
}

/// Subscribes through a new `Config`.
async fn subscribe(client: &Client) -> Subscription<Limits> {
    soon(config(client).subscribe()).await.unwrap()
}

both_backends! {
    async fn a_change_is_read_once_in_a_session_however_many_configs_follow_it(backend: Backend) {
        let server = backend.start().await;
        let operator = connect(&server).await;
        soon(config(&operator).publish(&limits(1))).await.unwrap();
        let clients = join_all((0..SESSIONS).map(|_| connect(&server))).await;
        let proxy = server.front();
        let before = proxy.trace().len();
        let mut subscriptions = Vec::new();
        for client in &clients {
            for _ in 0..CONFIGS {
                subscriptions.push(subscribe(client).await);
            }
        }
        // In each client, all subscriptions but the first start with the known value.
        assert_eq!(requests(&proxy.trace()[before..]), counts([(OpCode::GetData, SESSIONS)]));
        let before = proxy.trace().len();
        operator.set(PATH, json(2), None).await.unwrap();
        for subscription in &mut subscriptions {
            assert_eq!(next(subscription).await.per_second, 2);
        }
        let cost = requests(&proxy.trace()[before..]);
        assert_eq!(cost, counts([(OpCode::SetData, 1), (OpCode::GetData, SESSIONS)]));
    }

    async fn the_watch_is_removed_with_the_last_subscription(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let (operator, client) =
            (connect(&server).await, builder(&server, proxy.connect_string()).connect().await.unwrap());
        soon(config(&operator).publish(&limits(1))).await.unwrap();
        let (first, mut second) = (subscribe(&client).await, subscribe(&client).await);
        drop(first);
        operator.set(PATH, json(2), None).await.unwrap();
        assert_eq!(next(&mut second).await.per_second, 2);
        drop(second);
        soon(async {
            while !proxy.trace().iter().any(|frame| frame.is_request(OpCode::RemoveWatches)) {
                docent_tests::pause().await;
            }
        }).await;
        let before = proxy.trace().len();
        operator.set(PATH, json(3), None).await.unwrap();
        client.sync("/").await.unwrap();
        assert_eq!(requests(&proxy.trace()[before..]), counts([(OpCode::Sync, 1)]));
        // A new subscription starts with the current value.
        assert_eq!(subscribe(&client).await.current().per_second, 3);
    }

    async fn a_new_subscription_sees_what_its_client_wrote_before(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(config(&client).publish(&limits(1))).await.unwrap();
        let kept = subscribe(&client).await;
        for value in 2..100 {
            client.set(PATH, json(value), None).await.unwrap();
            assert_eq!(subscribe(&client).await.current().per_second, value);
        }
        until(&kept, 99).await;
    }

    async fn another_subscription_of_a_config_sees_what_its_client_published_before(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let config = config(&client);
        soon(config.publish(&limits(1))).await.unwrap();
        let kept = soon(config.subscribe()).await.unwrap();
        for value in 2..50 {
            soon(config.publish(&limits(value))).await.unwrap();
            assert_eq!(soon(config.subscribe()).await.unwrap().current().per_second, value);
        }
        until(&kept, 49).await;
    }

    async fn concurrent_and_dropped_subscribe_calls_share_one_read(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        soon(config(&client).publish(&limits(1))).await.unwrap();
        let configs: Vec<_> = (0..CONFIGS).map(|_| config(&client)).collect();
        proxy.set_flow(Direction::ToServer, Flow::Hold);
        let before = proxy.trace().len();
        let mut pending: Vec<_> = configs.iter().map(|config| Box::pin(config.subscribe())).collect();
        for pending in &mut pending {
            assert!(matches!(futures_util::poll!(pending.as_mut()), Poll::Pending));
        }
        pending.drain(..CONFIGS / 2);
        proxy.heal().await.unwrap();
        for subscription in soon(join_all(pending)).await {
            assert_eq!(subscription.unwrap().current().per_second, 1);
        }
        assert_eq!(requests(&proxy.trace()[before..])["GetData"], 1);
    }

    async fn a_read_error_reaches_every_subscription_and_is_cleared_by_a_successful_read(backend: Backend) {
        let server = backend.start().await;
        let (operator, client) = (connect(&server).await, connect(&server).await);
        soon(config(&operator).publish(&limits(1))).await.unwrap();
        operator.set_acl(PATH, [Acl::new(Permissions::ADMIN | Permissions::WRITE, "world", "anyone")], None).await.unwrap();
        let tolerant = Config::builder(&client, PATH).default_value(limits(9)).build().unwrap();
        let followed = soon(tolerant.subscribe()).await.unwrap();
        assert_eq!(followed.current().per_second, 9);
        for _ in 0..2 {
            let Err(SubscribeError::Core(error)) = soon(config(&client).subscribe()).await else { panic!() };
            assert_eq!((error.kind(), error.path()), (ErrorKind::NoAuth, Some(PATH)));
        }
        operator.set_acl(PATH, [Acl::open_unsafe()], None).await.unwrap();
        client.sync(PATH).await.unwrap();
        // The value is read immediately, without the retry pause of the rejected subscriptions.
        assert_eq!(subscribe(&client).await.current().per_second, 1);
        until(&followed, 1).await;
        assert!(followed.last_error().is_none());
    }

    async fn configs_with_different_types_and_validation_share_the_read(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let whole = Config::<Limits>::new(&client, PATH).unwrap();
        soon(whole.publish(&limits(1))).await.unwrap();
        let small = Config::<Limits>::builder(&client, PATH)
            .validate(|limits| if limits.per_second < 5 { Ok(()) } else { Err("too much") })
            .build()
            .unwrap();
        let (mut whole, small) = (soon(whole.subscribe()).await.unwrap(), soon(small.subscribe()).await.unwrap());
        let map = Config::<BTreeMap<String, u32>>::new(&client, PATH).unwrap();
        let map = soon(map.subscribe()).await.unwrap();
        client.set(PATH, json(7), None).await.unwrap();
        assert_eq!(next(&mut whole).await.per_second, 7);
        until(&whole, 7).await;
        soon(async {
            while small.refused() == 0 || map.current()["per_second"] != 7 {
                docent_tests::pause().await;
            }
        }).await;
        assert_eq!(small.current().per_second, 1);
    }

    async fn a_closed_client_ends_every_subscription(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        soon(config(&client).publish(&limits(1))).await.unwrap();
        let (mut first, mut second) = (subscribe(&client).await, subscribe(&client).await);
        soon(client.close()).await;
        assert!(soon(first.changed()).await.is_none() && soon(second.changed()).await.is_none());
        assert!(first.is_stale() && second.is_stale());
        let Err(SubscribeError::Core(error)) = soon(config(&client).subscribe()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Closed);
    }
}
