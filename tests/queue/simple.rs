//! The queue of ZooKeeper's documentation.

use docent::{Client, CreateMode, ErrorKind, SimpleQueue};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon, until};
use futures_util::future::join_all;
use std::time::Duration;
use tokio::time::Instant;

const PATH: &str = "/simple";

both_backends! {
    async fn a_simple_queue_shares_its_items_with_curators(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let simple = SimpleQueue::new(&client, PATH).unwrap();
        assert_eq!((simple.peek().await.unwrap(), simple.try_take().await.unwrap()), (None, None));
        simple.put("a").await.unwrap();
        client.create(&format!("{PATH}/qn-"), "b", CreateMode::PersistentSequential).await.unwrap();
        client.create(&format!("{PATH}/foreign"), "x", CreateMode::Persistent).await.unwrap();
        let names = client.children(PATH).await.unwrap().names;
        assert!(names.contains(&"qn-0000000000".to_owned()), "{names:?}");
        assert_eq!(client.get(&format!("{PATH}/qn-0000000000")).await.unwrap().data, "a");
        assert_eq!((simple.len().await.unwrap(), simple.peek().await.unwrap().unwrap()), (2, "a".into()));
        assert_eq!(soon(simple.take()).await.unwrap(), "a");
        assert_eq!(soon(simple.try_take()).await.unwrap().unwrap(), "b");
        assert!(simple.is_empty().await.unwrap());
        assert_eq!(client.children(PATH).await.unwrap().names, ["foreign"]);
    }

    async fn a_waiting_consumer_gets_new_items_and_each_item_has_one_consumer(backend: Backend) {
        let server = backend.start().await;
        let clients = join_all((0..4).map(|_| connect(&server))).await;
        let take = clients.iter().map(|client| {
            let simple = SimpleQueue::new(client, PATH).unwrap();
            async move {
                let mut items = Vec::new();
                while let Some(item) = simple.take_timeout(Duration::from_secs(20)).await.unwrap() {
                    if item == "end" {
                        break;
                    }
                    items.push(item);
                }
                items
            }
        });
        let put = async {
            let simple = SimpleQueue::new(&clients[0], PATH).unwrap();
            for item in 0..40 {
                simple.put(item.to_string()).await.unwrap();
            }
            for _ in &clients {
                simple.put("end").await.unwrap();
            }
        };
        let (items, ()) = soon(async { tokio::join!(join_all(take), put) }).await;
        let mut items: Vec<u32> =
            items.into_iter().flatten().map(|item| String::from_utf8_lossy(&item).parse().unwrap()).collect();
        items.sort_unstable();
        assert_eq!(items, (0..40).collect::<Vec<_>>());
    }

    async fn a_lost_reply_neither_doubles_nor_loses_an_item(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let simple = SimpleQueue::new(&client, PATH).unwrap();
        simple.put("a").await.unwrap();
        let broken = async |rule: docent_battery::Armed| {
            rule.fired().await;
            proxy.reset().await;
        };
        let rule = proxy.add(Rule::on(OpCode::Multi).swallow_reply());
        soon(async { tokio::join!(simple.put("b"), broken(rule)) }).await.0.unwrap();
        assert_eq!(simple.len().await.unwrap(), 2);
        let rule = proxy.add(Rule::on(OpCode::Multi).swallow_reply());
        let taken = soon(async { tokio::join!(simple.take(), broken(rule)) }).await.0.unwrap();
        assert_eq!((taken, simple.len().await.unwrap()), ("a".into(), 1));
        assert_eq!(soon(simple.take()).await.unwrap(), "b");
        assert!(simple.take_timeout(Duration::from_millis(100)).await.unwrap().is_none());
        let take = simple.take();
        assert_eq!(soon(async { tokio::join!(take, client.close()) }).await.0.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn a_waiting_consumer_gets_an_item_even_if_the_empty_queue_was_deleted_meanwhile(backend: Backend) {
        let server = backend.start().await;
        let (client, producer) = (connect(&server).await, connect(&server).await);
        let (simple, producer) = (SimpleQueue::new(&client, PATH).unwrap(), SimpleQueue::new(&producer, PATH).unwrap());
        producer.put("a").await.unwrap();
        assert_eq!(soon(simple.take()).await.unwrap(), "a");
        let take = tokio::spawn(async move { simple.take().await });
        // The servers delete an empty container.
        until(async || client.exists(PATH).await.unwrap().is_none()).await;
        producer.put("b").await.unwrap();
        assert_eq!(soon(take).await.unwrap().unwrap(), "b");
    }

    async fn a_thousand_takes_list_the_queue_a_few_times(backend: Backend) {
        const ITEMS: usize = 1_000;
        let server = backend.start().await;
        let (client, producer) = (connect(&server).await, connect(&server).await);
        let simple = SimpleQueue::new(&client, PATH).unwrap();
        put_all(&producer, 0..ITEMS).await;
        let proxy = server.front();
        let before = proxy.trace().len();
        let began = Instant::now();
        for item in 0..ITEMS {
            assert_eq!(soon(simple.take()).await.unwrap(), item.to_string());
        }
        // A listing is used for ten seconds at most.
        let renewed = began.elapsed().as_secs() as usize / 10;
        let cost = |op| proxy.trace()[before..].iter().filter(|frame| frame.is_request(op)).count();
        let listings = cost(OpCode::GetChildren2) + cost(OpCode::GetChildren);
        assert!(listings <= 3 + renewed, "{listings} listings for {ITEMS} takes");
        assert_eq!(cost(OpCode::GetData), ITEMS);
        assert_eq!(soon(simple.try_take()).await.unwrap(), None);
    }

    async fn an_outdated_listing_costs_a_few_reads_and_keeps_the_order(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (simple, peer) = (SimpleQueue::new(&client, PATH).unwrap(), SimpleQueue::new(&other, PATH).unwrap());
        for items in [0..20, 20..2_520] {
            put_all(&other, items.clone()).await;
            assert_eq!(soon(simple.take()).await.unwrap(), items.start.to_string());
            // Another client takes all but two of the items that are known here, and more items are put
            // behind them.
            for item in items.start + 1..items.start + 18 {
                assert_eq!(soon(peer.take()).await.unwrap(), item.to_string());
            }
            put_all(&other, [9_000]).await;
            for item in (items.start + 18..items.end).chain([9_000]) {
                assert_eq!(soon(simple.take()).await.unwrap(), item.to_string());
            }
            assert_eq!(soon(simple.try_take()).await.unwrap(), None);
        }
    }

    async fn an_item_of_a_take_that_was_dropped_is_the_next_one(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let (client, producer) = (
            builder(&server, proxy.connect_string()).connect().await.unwrap(),
            connect(&server).await,
        );
        let simple = SimpleQueue::new(&client, PATH).unwrap();
        put_all(&producer, 0..4).await;
        assert_eq!(soon(simple.take()).await.unwrap(), "0");
        let rule = proxy.add(Rule::on(OpCode::GetData).hold());
        let dropped = tokio::spawn(simple.take());
        soon(rule.fired()).await;
        dropped.abort();
        assert!(soon(dropped).await.unwrap_err().is_cancelled());
        proxy.heal().await.unwrap();
        for item in 1..4 {
            assert_eq!(soon(simple.take()).await.unwrap(), item.to_string());
        }
        assert!(soon(simple.is_empty()).await.unwrap());
    }
}

/// Puts items in this order.
async fn put_all(client: &Client, items: impl IntoIterator<Item = usize>) {
    let items: Vec<_> = items.into_iter().collect();
    client.ensure_path(PATH).await.unwrap();
    for items in items.chunks(500) {
        let put = items.iter().fold(client.transaction(), |put, item| {
            put.create(&format!("{PATH}/qn-"), item.to_string(), CreateMode::PersistentSequential)
        });
        put.commit().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_simple_queue_whose_numbers_are_used_up_returns_an_error() {
    let server = Backend::Memory.start().await;
    let client = connect(&server).await;
    let simple = SimpleQueue::new(&client, PATH).unwrap();
    simple.put("a").await.unwrap();
    // The servers' counter stops at this number.
    assert!(server.as_embedded().unwrap().skip_numbers(&server.path("simple"), i32::MAX));
    simple.put("b").await.unwrap();
    let mut refused = None;
    for _ in 0..3 {
        refused = simple.put("c").await.err().or(refused);
    }
    let error = refused.expect("a number must be used only once");
    assert_eq!((error.kind(), error.path()), (ErrorKind::SequenceExhausted, Some(PATH)));
    assert!(!error.is_retryable() && !error.may_have_applied());
    let text = "put \"/simple\": the sequence numbers of this path are nearly used up";
    assert!(error.to_string().starts_with(text), "{error}");
}
