//! The queue of ZooKeeper's documentation.

use docent::{CreateMode, ErrorKind, SimpleQueue};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};
use futures_util::future::join_all;
use std::time::Duration;

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

    async fn who_waits_gets_what_is_put_and_each_item_goes_to_one(backend: Backend) {
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

    async fn who_waits_gets_an_item_also_when_the_empty_queue_was_deleted_meanwhile(backend: Backend) {
        let server = backend.start().await;
        let (client, producer) = (connect(&server).await, connect(&server).await);
        let (simple, producer) = (SimpleQueue::new(&client, PATH).unwrap(), SimpleQueue::new(&producer, PATH).unwrap());
        producer.put("a").await.unwrap();
        assert_eq!(soon(simple.take()).await.unwrap(), "a");
        let take = tokio::spawn(async move { simple.take().await });
        // The servers delete an empty container.
        soon(async {
            while client.exists(PATH).await.unwrap().is_some() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }).await;
        producer.put("b").await.unwrap();
        assert_eq!(soon(take).await.unwrap().unwrap(), "b");
    }
}
