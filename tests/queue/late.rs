//! Claims whose call was cancelled, or whose reply is late. Only hand-outs are counted.

use crate::jobs::{QUEUE, builder, queue, take};
use bytes::Bytes;
use docent::queue::{Codec, CodecError};
use docent::{Client, Queue};
use docent_battery::{Backend, Direction, Proxy, TestServer, both_backends};
use docent_tests::{connect, soon, until, within};
use futures_util::FutureExt;
use std::sync::Arc;
use std::time::Duration;

/// Delay of a slow link in one direction.
const SLOW: Duration = Duration::from_millis(150);

async fn slow_client(server: &TestServer) -> (Client, Proxy) {
    let proxy = server.proxy().await;
    let client = docent_tests::builder(server, proxy.connect_string())
        .session_timeout(Duration::from_secs(60))
        .connect()
        .await
        .unwrap();
    (client, proxy)
}

/// A codec that cuts off its client when it decodes an item, and fails.
struct CutsOff(Arc<Proxy>);

impl Codec<u64> for CutsOff {
    fn encode(&self, _: &u64) -> Result<Bytes, CodecError> {
        Ok(Bytes::new())
    }

    fn decode(&self, _: &Bytes) -> Result<u64, CodecError> {
        self.0.blackhole();
        Err(CodecError::new("the item cannot be decoded"))
    }
}

/// Number of existing claims.
async fn claims(client: &Client) -> usize {
    client.children(&format!("{QUEUE}/claims")).await.map_or(0, |claims| claims.names.len())
}

both_backends! {
    async fn a_call_that_is_no_longer_polled_keeps_no_client_open(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        let producer = connect(&server).await;
        let mut take = Box::pin(jobs.take());
        assert!(take.as_mut().now_or_never().is_none());
        queue(&producer).put(&1).await.unwrap();
        // The item is claimed for the call, which is not polled.
        until(async || claims(&producer).await == 1).await;
        within(Duration::from_secs(5), client.close()).await;
        assert_eq!(claims(&producer).await, 0);
        drop(take);
    }

    async fn a_claim_in_progress_at_the_timeout_is_returned_by_the_call(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = slow_client(&server).await;
        let jobs = queue(&client);
        queue(&connect(&server).await).put(&1).await.unwrap();
        // Completes the first listing and creates the marker of the first write.
        assert_eq!(jobs.peek().await.unwrap(), Some(1));
        soon(take(&jobs).await.nack_now()).await.unwrap();
        proxy.set_delay(Direction::ToClient, SLOW);
        for count in 2..=8 {
            // The listing arrives in time, the claim does not.
            let taken = soon(jobs.take_timeout(SLOW + SLOW / 2)).await.unwrap();
            let taken = taken.expect("take must wait for the claim in flight");
            assert_eq!(taken.deliveries(), Some(count));
            soon(taken.nack_now()).await.unwrap();
        }
    }

    async fn a_cancelled_call_uses_up_no_delivery_and_its_claim_serves_the_next_call(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = slow_client(&server).await;
        let jobs: Queue<u64> = builder(&client).max_deliveries(1).build().unwrap();
        queue(&connect(&server).await).put(&1).await.unwrap();
        proxy.set_delay(Direction::ToClient, SLOW);
        let mut round = 0;
        until(async || {
            // The call is dropped at a different moment each time, finally while the claim is in flight.
            round += 1;
            match tokio::time::timeout(SLOW / 4 * round, jobs.take()).await {
                Ok(taken) => {
                    assert_eq!(taken.unwrap().deliveries(), Some(1));
                    true
                }
                Err(_) => false,
            }
        }).await;
        assert!(round > 3, "no call was cancelled");
    }

    async fn polls_that_never_get_an_item_never_bury_it(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = slow_client(&server).await;
        let other = connect(&server).await;
        let jobs: Queue<u64> = builder(&client).max_deliveries(2).build().unwrap();
        queue(&other).put(&1).await.unwrap();
        assert_eq!(jobs.peek().await.unwrap(), Some(1));
        proxy.set_delay(Direction::ToClient, SLOW);
        for _ in 0..4 {
            // The call is cancelled before its claim is created. No call asks again for longer than the claim
            // is kept.
            let call = jobs.take();
            tokio::select! {
                _ = call => panic!("the take returned before its slow reply"),
                () = until(async || claims(&other).await == 1) => {}
            }
            until(async || claims(&other).await == 0).await;
        }
        let delivery = soon(jobs.take()).await.unwrap();
        assert_eq!((*delivery.item(), delivery.deliveries()), (1, Some(1)));
    }

    async fn a_late_claim_is_kept_for_the_next_call_and_then_given_back(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = slow_client(&server).await;
        let other = connect(&server).await;
        let (jobs, peer) = (queue(&client), queue(&other));
        peer.put(&1).await.unwrap();
        proxy.set_delay(Direction::ToClient, SLOW);
        tokio::select! {
            _ = jobs.take() => panic!("the take returned before its slow reply"),
            () = until(async || claims(&other).await == 1) => {}
        }
        // The claim exists, but no call of this process has it. Another process cannot get the item now.
        assert!(peer.try_take().await.unwrap().is_none());
        let taken = soon(peer.take()).await.unwrap();
        assert_eq!((*taken.item(), taken.deliveries()), (1, Some(1)));
        soon(taken.ack()).await.unwrap();
    }

    async fn hand_outs_are_counted_in_ordered_mode_too(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = slow_client(&server).await;
        let other = connect(&server).await;
        let ordered = |client: &Client| builder(client).ordered().max_deliveries(3).build().unwrap();
        let (jobs, peer): (Queue<u64>, Queue<u64>) = (ordered(&client), ordered(&other));
        peer.put(&1).await.unwrap();
        let item = format!("{QUEUE}/items/item-0000000000");
        proxy.set_delay(Direction::ToClient, SLOW);
        for round in 0..6 {
            let version = async || other.exists(&item).await.unwrap().map(|stat| stat.version);
            // Counting and taking back each change the version once.
            tokio::select! {
                _ = jobs.take() => panic!("the take returned before its slow reply"),
                () = until(async || version().await > Some(2 * round)) => {}
            }
            until(async || version().await == Some(2 * round + 2)).await;
        }
        let taken = soon(peer.take()).await.unwrap();
        assert_eq!((*taken.item(), taken.deliveries()), (1, Some(1)));
    }

    async fn prefetched_items_that_were_never_handed_out_do_not_count_when_the_consumer_dies(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let peer = queue(&other);
        peer.put_all(&[1, 2, 3, 4]).await.unwrap();
        for count in 1..=5 {
            let client = connect(&server).await;
            let jobs: Queue<u64> = builder(&client).prefetch(4).build().unwrap();
            let mut deliveries = jobs.deliveries();
            let first = soon(futures_util::StreamExt::next(&mut deliveries)).await.unwrap().unwrap();
            assert_eq!((*first.item(), first.deliveries()), (1, Some(count)));
            // Simulates a process that dies.
            server.expire(client.session_id().unwrap()).await.unwrap();
            soon(first.lost()).await;
            drop((first, deliveries));
            soon(client.close()).await;
        }
        let batch = soon(peer.take_batch(4)).await.unwrap();
        let counts: Vec<_> = batch.iter().map(docent::Delivery::deliveries).collect();
        assert_eq!(counts, [Some(6), Some(1), Some(1), Some(1)]);
    }

    async fn a_consumer_whose_database_is_down_for_two_seconds_buries_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<u64> = Queue::new(&client, QUEUE).unwrap();
        jobs.put_all(&(0..10).collect::<Vec<_>>()).await.unwrap();
        let down_until = tokio::time::Instant::now() + Duration::from_secs(2);
        let mut done = 0;
        while done < 10 {
            let delivery = soon(jobs.take()).await.unwrap();
            if tokio::time::Instant::now() < down_until {
                delivery.nack().unwrap();
            } else {
                soon(delivery.ack()).await.unwrap();
                done += 1;
            }
        }
        assert!(jobs.dead_letters().is_empty().await.unwrap() && jobs.is_empty().await.unwrap());
    }

    async fn a_call_with_a_zero_timeout_takes_an_available_item(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs = queue(&client);
        assert!(soon(jobs.take_timeout(Duration::ZERO)).await.unwrap().is_none());
        jobs.put(&1).await.unwrap();
        let taken = soon(jobs.take_timeout(Duration::ZERO)).await.unwrap();
        assert_eq!(taken.expect("the queue must have an item").deliveries(), Some(1));
    }

    async fn a_call_waits_no_longer_for_an_item_that_it_cannot_decode(backend: Backend) {
        let server = backend.start().await;
        let (client, proxy) = slow_client(&server).await;
        queue(&connect(&server).await).put(&1).await.unwrap();
        let proxy = Arc::new(proxy);
        let jobs = Queue::builder_with(&client, QUEUE, CutsOff(Arc::clone(&proxy))).build().unwrap();
        let taken = within(Duration::from_secs(5), jobs.take_timeout(SLOW * 4)).await.unwrap();
        assert!(taken.is_none());
    }

    async fn a_call_that_is_not_polled_withholds_no_item(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (jobs, peer) = (queue(&client), queue(&other));
        peer.put(&1).await.unwrap();
        let mut call = Box::pin(jobs.take());
        assert!(futures_util::poll!(&mut call).is_pending());
        until(async || claims(&other).await == 1).await;
        // The call is not polled, as in a program that is busy elsewhere.
        let taken = soon(peer.take()).await.unwrap();
        assert_eq!((*taken.item(), taken.deliveries()), (1, Some(1)));
        peer.put(&2).await.unwrap();
        let taken = soon(call).await.unwrap();
        assert_eq!((*taken.item(), taken.deliveries()), (2, Some(1)));
    }
}
