//! Puts under faults.

use crate::jobs::{QUEUE, drain, queue};
use docent::queue::PutError;
use docent::{Client, ErrorKind, Queue};
use docent_battery::battery::{BREAKS, Break, Fault, RoundRequest, poll_times};
use docent_battery::{Backend, Proxy, TestServer, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, own_nodes_in, soon};
use futures_util::future::join_all;
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Handle;

/// A producer with its own link, in its own empty namespace.
async fn producer(server: &TestServer, case: &str) -> (Client, Queue<u64>, Proxy) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string())
        .namespace(server.path(case))
        .session_timeout(Duration::from_secs(12))
        .connect()
        .await
        .unwrap();
    let queue = queue(&client);
    (client, queue, proxy)
}

/// The items of a producer's queue, as another client gets them.
async fn items_of(judge: &Client, case: &str) -> Vec<u64> {
    drain(&Queue::new(judge, &format!("/{case}{QUEUE}")).unwrap()).await
}

/// The requests of a put.
async fn requests(server: &TestServer) -> Vec<RoundRequest> {
    let (_client, queue, proxy) = producer(server, "recorded").await;
    let before = proxy.trace().len();
    queue.put(&1).await.unwrap();
    RoundRequest::all(&proxy.trace()[before..])
}

/// Puts 7 while the link breaks at a request, and returns the put's result.
async fn put_broken(
    server: &TestServer,
    case: &str,
    request: RoundRequest,
    fault: Fault,
) -> Result<(), PutError> {
    let (client, queue, proxy) = producer(server, case).await;
    let session = client.session_id().unwrap();
    let link = Break::at(request, fault, server, &proxy, session);
    let (result, broke) = soon(async { tokio::join!(queue.put(&7), link.done()) }).await;
    broke.unwrap();
    result
}

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

async fn until_tasks(count: usize) {
    soon(async {
        while tasks() > count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

both_backends! {
    async fn a_link_that_breaks_at_any_request_of_a_put_neither_doubles_nor_drops_the_item(backend: Backend) {
        let server = backend.start().await;
        let judge = connect(&server).await;
        let request = requests(&server).await;
        assert!(request.len() > 2, "{request:?}");
        let cases = request.iter().flat_map(|request| BREAKS.map(|fault| (*request, fault))).enumerate();
        let cases = cases.map(|(number, (request, fault))| {
            let (server, judge) = (&server, &judge);
            async move {
                let case = format!("case-{number}");
                let result = put_broken(server, &case, request, fault).await;
                let items = items_of(judge, &case).await;
                match result {
                    Ok(()) => assert_eq!(items, [7], "{request:?} {fault:?}"),
                    Err(PutError::Core(error)) if matches!(fault, Fault::Expired) => {
                        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{request:?}");
                        assert!(error.may_have_applied() && items.len() <= 1, "{request:?} {items:?}");
                    }
                    Err(error) => panic!("{request:?} {fault:?}: {error:?}"),
                }
            }
        });
        join_all(cases).await;
    }

    async fn a_put_that_is_dropped_at_any_poll_puts_once_or_not_at_all_and_the_next_one_is_sound(backend: Backend) {
        let server = backend.start().await;
        let judge = connect(&server).await;
        for cut in [false, true] {
            for polls in 0.. {
                let case = format!("case-{cut}-{polls}");
                let (client, producer, proxy) = producer(&server, &case).await;
                let done = {
                    let mut put = pin!(producer.put(&7));
                    let done = soon(poll_times(polls, put.as_mut())).await;
                    if done.is_none() && cut {
                        proxy.cut().await;
                        let _ = poll_times(1, put).await;
                    }
                    done
                };
                proxy.heal().await.unwrap();
                soon(producer.put(&8)).await.unwrap();
                soon(client.close()).await;
                let items = items_of(&judge, &case).await;
                assert!(items == [7, 8] || items == [8] && done.is_none(), "{polls} polls: {items:?}");
                let remaining = soon(own_nodes_in(&judge, &format!("/{case}"))).await;
                assert!(remaining.is_empty(), "{polls} polls: {remaining:?}");
                if let Some(result) = done {
                    result.unwrap();
                    break;
                }
                assert!(polls < 100);
            }
        }
    }

    async fn a_client_that_is_closed_at_any_poll_of_a_put_ends_it(backend: Backend) {
        let server = backend.start().await;
        let judge = connect(&server).await;
        let before = tasks();
        for polls in 0.. {
            let path = format!("/case-{polls}");
            let client = connect(&server).await;
            let queue: Queue<u64> = Queue::new(&client, &path).unwrap();
            let (done, result) = {
                let mut put = pin!(queue.put(&7));
                match soon(poll_times(polls, put.as_mut())).await {
                    Some(result) => {
                        soon(client.close()).await;
                        (true, result)
                    }
                    None => (false, soon(async { tokio::join!(put, client.close()) }).await.0),
                }
            };
            let items = drain(&Queue::new(&judge, &path).unwrap()).await;
            match result {
                Ok(()) => assert_eq!(items, [7], "{polls} polls"),
                Err(PutError::Core(error)) => {
                    assert_eq!(error.kind(), ErrorKind::Closed, "{polls} polls: {error}");
                    assert!(items.is_empty() || items == [7] && error.may_have_applied(), "{polls} polls");
                }
                Err(error) => panic!("{error}"),
            }
            drop((queue, client));
            until_tasks(before).await;
            if done {
                break;
            }
            assert!(polls < 100);
        }
    }

    async fn all_items_are_put_or_none(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let queue = queue(&client);
        queue.put(&0).await.unwrap();
        let proxy = server.front();
        let before = proxy.trace().len();
        queue.put_all(&(1..=50).collect::<Vec<_>>()).await.unwrap();
        let multis = proxy.trace()[before..].iter().filter(|frame| frame.is_reply(OpCode::Multi)).count();
        assert_eq!(multis, 1);
        let words: Queue<String> = Queue::new(&client, "/words").unwrap();
        let large = vec!["x".repeat(300_000); 4];
        let error = soon(words.put_all(&large)).await.unwrap_err();
        assert!(matches!(&error, PutError::Core(error) if error.kind() == ErrorKind::TooLarge), "{error:?}");
        assert!(words.is_empty().await.unwrap());
        soon(words.put_all(&large[..3])).await.unwrap();
        assert_eq!((words.len().await.unwrap(), queue.len().await.unwrap()), (3, 51));
    }

    async fn a_full_queue_refuses_puts_until_an_item_is_acknowledged(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let queue: Queue<u64> = Queue::builder(&client, QUEUE).capacity(3).build().unwrap();
        queue.put_all(&[1, 2]).await.unwrap();
        let error = queue.put_all(&[3, 4]).await.unwrap_err();
        assert!(matches!(error, PutError::Full { length: 2, capacity: 3 }), "{error:?}");
        assert!(error.to_string().contains("2 items of at most 3"), "{error}");
        queue.put(&3).await.unwrap();
        let first = soon(queue.try_take()).await.unwrap().unwrap();
        assert!(matches!(queue.put(&4).await.unwrap_err(), PutError::Full { length: 3, .. }));
        soon(first.ack()).await.unwrap();
        queue.put(&4).await.unwrap();
        assert_eq!(drain(&queue).await, [2, 3, 4]);
    }

    async fn a_capacity_is_exceeded_at_most_by_a_put_of_each_producer(backend: Backend) {
        const PRODUCERS: usize = 4;
        let server = backend.start().await;
        let clients = join_all((0..PRODUCERS).map(|_| connect(&server))).await;
        let puts = clients.iter().map(|client| async move {
            let queue: Queue<u64> = Queue::builder(client, QUEUE).capacity(20).build().unwrap();
            let mut put = 0;
            while queue.put(&1).await.is_ok() {
                put += 1;
            }
            put
        });
        let put: usize = join_all(puts).await.iter().sum();
        assert_eq!(queue(&clients[0]).len().await.unwrap(), put);
        assert!((20..20 + PRODUCERS).contains(&put), "{put}");
    }

    async fn the_items_of_a_producer_that_dies_remain(backend: Backend) {
        let server = backend.start().await;
        let (producer, consumer) = (connect(&server).await, connect(&server).await);
        queue(&producer).put_all(&[1, 2]).await.unwrap();
        server.expire(producer.session_id().unwrap()).await.unwrap();
        assert_eq!(drain(&queue(&consumer)).await, [1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_whose_numbers_are_used_up_works_again_after_any_client_resets_it() {
    const LAST: i32 = i32::MAX - (1 << 20);
    let server = Backend::Memory.start().await;
    let (here, there) = (connect(&server).await, connect(&server).await);
    let (here, there) = (queue(&here), queue(&there));
    here.put(&1).await.unwrap();
    assert!(server.as_embedded().unwrap().skip_numbers(&server.path("queue/items"), LAST));
    here.put_all(&[2, 3]).await.unwrap();
    for _ in 0..2 {
        let error = here.put(&4).await.unwrap_err();
        assert!(matches!(error, PutError::SequenceExhausted), "{error:?}");
    }
    assert_eq!(drain(&there).await, [1, 2, 3]);
    assert!(
        matches!(here.put(&4).await.unwrap_err(), PutError::SequenceExhausted),
        "the counter must be unchanged"
    );
    there.reset().await.unwrap();
    here.put(&5).await.unwrap();
    assert_eq!(soon(there.take()).await.unwrap().name(), "item-0000000000");
}
