//! Counters, in Curator's layout.

use docent::config::{CounterError, Integer};
use docent::node::Acl;
use docent::{Client, Counter, CreateMode, ErrorKind};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon};

fn counter<N: Integer>(client: &Client) -> Counter<N> {
    Counter::new(client, "/counters/orders").unwrap()
}

both_backends! {
    async fn numbers_are_those_of_curators_atomics(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let (long, int) = (counter::<i64>(&client), Counter::<i32>::new(&client, "/int").unwrap());
        // The counter has no node yet.
        assert_eq!(soon(long.get()).await.unwrap(), 0);
        assert!(!soon(long.compare_and_set(0, 5)).await.unwrap());
        assert!(client.exists("/counters/orders").await.unwrap().is_none());
        let counted = soon(long.add(301)).await.unwrap();
        assert_eq!((counted.before, counted.after), (0, 301));
        assert_eq!(client.get("/counters/orders").await.unwrap().data.as_ref(), [0, 0, 0, 0, 0, 0, 1, 0x2d]);
        let counted = soon(int.decrement()).await.unwrap();
        assert_eq!((counted.before, counted.after), (0, -1));
        assert_eq!(client.get("/int").await.unwrap().data.as_ref(), [255; 4]);
        assert_eq!(soon(int.increment()).await.unwrap().after, 0);
        assert_eq!(soon(int.subtract(7)).await.unwrap().after, -7);
        // Empty data counts as 0, too few bytes are an error, and surplus bytes are ignored.
        client.set("/int", "", None).await.unwrap();
        assert_eq!(soon(int.get()).await.unwrap(), 0);
        assert_eq!(soon(int.increment()).await.unwrap().after, 1);
        client.set("/int", vec![0, 0, 1, 2, 3], None).await.unwrap();
        assert_eq!(soon(int.get()).await.unwrap(), 258);
        for corrupted in [vec![1], vec![1, 2, 3]] {
            client.set("/int", corrupted.clone(), None).await.unwrap();
            let Err(CounterError::Corrupted { path, found, wanted }) = soon(int.increment()).await else { panic!() };
            assert_eq!((path.as_str(), found, wanted), ("/int", corrupted.len(), 4));
            assert_eq!(client.get("/int").await.unwrap().data, corrupted);
        }
        soon(int.set(9)).await.unwrap();
        assert_eq!(soon(int.get()).await.unwrap(), 9);
    }

    async fn compare_and_set_initialize_and_set(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let counter = counter::<i64>(&client);
        assert!(soon(counter.initialize(5)).await.unwrap());
        assert!(!soon(counter.initialize(6)).await.unwrap());
        assert!(!soon(counter.compare_and_set(6, 7)).await.unwrap());
        assert!(soon(counter.compare_and_set(5, 7)).await.unwrap());
        assert_eq!(soon(counter.get()).await.unwrap(), 7);
        soon(counter.set(i64::MAX)).await.unwrap();
        assert!(matches!(soon(counter.increment()).await, Err(CounterError::Overflow { .. })));
        soon(counter.set(i64::MIN)).await.unwrap();
        assert!(matches!(soon(counter.subtract(1)).await, Err(CounterError::Overflow { .. })));
        assert_eq!(soon(counter.get()).await.unwrap(), i64::MIN);
        let fresh = Counter::<i64>::new(&client, "/fresh").unwrap();
        soon(fresh.set(3)).await.unwrap();
        assert_eq!(soon(fresh.get()).await.unwrap(), 3);
    }

    async fn concurrent_increments_sum_exactly_and_each_number_is_returned_once(backend: Backend) {
        const TASKS: usize = 6;
        const EACH: usize = 15;
        let server = backend.start().await;
        let clients = [connect(&server).await, connect(&server).await, connect(&server).await];
        let mut tasks = Vec::new();
        for number in 0..TASKS {
            let counter = counter::<i64>(&clients[number % clients.len()]);
            tasks.push(tokio::spawn(async move {
                let mut given = Vec::new();
                for _ in 0..EACH {
                    given.push(counter.increment().await.unwrap().after);
                }
                given
            }));
        }
        let mut given = Vec::new();
        for task in tasks {
            given.extend(soon(task).await.unwrap());
        }
        given.sort_unstable();
        let all: Vec<_> = (1..=i64::try_from(TASKS * EACH).unwrap()).collect();
        assert_eq!(given, all);
    }

    async fn a_swallowed_reply_counts_once(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let counter = counter::<i64>(&client);
        for round in 0..6 {
            let lost = proxy.add(Rule::on(OpCode::Multi).swallow_reply());
            let counting = tokio::spawn({ let counter = counter.clone(); async move { counter.increment().await } });
            soon(lost.fired()).await;
            proxy.reset().await;
            let counted = soon(counting).await.unwrap().unwrap();
            assert_eq!((counted.before, counted.after), (round, round + 1));
        }
        assert_eq!(soon(counter.get()).await.unwrap(), 6);
        assert_eq!(client.get("/counters/orders").await.unwrap().stat.version, 5);
    }

    async fn counting_below_an_ephemeral_node_or_without_permission_is_an_error(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/ephemeral", "", CreateMode::Ephemeral).await.unwrap();
        let Err(CounterError::Core(error)) = soon(Counter::<i64>::new(&client, "/ephemeral/a").unwrap().increment()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::NoChildrenForEphemerals);
        client.create("/closed", "", CreateMode::Persistent).await.unwrap();
        client.set_acl("/closed", [Acl::read_all()], None).await.unwrap();
        let Err(CounterError::Core(error)) = soon(Counter::<i64>::new(&client, "/closed/a").unwrap().increment()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::NoAuth);
        let Err(CounterError::Core(error)) = soon(Counter::<i64>::new(&client, "/closed").unwrap().increment()).await else { panic!() };
        assert!(matches!(error.kind(), ErrorKind::NoAuth), "{error}");
        soon(client.close()).await;
        let Err(CounterError::Core(error)) = soon(counter::<i64>(&client).get()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Closed);
    }

    async fn a_lagging_server_causes_no_rejection(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let syncs = || server.front().trace().iter().filter(|frame| frame.is_reply(OpCode::Sync)).count();
        let counter = Counter::<i64>::new(&client, "/counter").unwrap();
        soon(counter.set(i64::MAX)).await.unwrap();
        let before = syncs();
        assert!(matches!(soon(counter.increment()).await, Err(CounterError::Overflow { .. })));
        assert_eq!(syncs(), before + 1, "the counter read the latest value first");
        client.set("/counter", "bad", None).await.unwrap();
        assert!(matches!(soon(counter.increment()).await, Err(CounterError::Corrupted { .. })));
        assert_eq!(syncs(), before + 2);
        let config = crate::support::config(&client);
        assert!(soon(config.update(|_| None)).await.unwrap().is_none());
        assert_eq!(syncs(), before + 3);
    }
}
