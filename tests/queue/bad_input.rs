//! Bad input is an error that names value and rule, and nothing is stored.

use crate::jobs::{QUEUE, queue};
use bytes::Bytes;
use docent::queue::{AckError, PutError, QueueLayout, Raw};
use docent::{Delivery, ErrorKind, Queue, SimpleQueue};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, frames_since, refuses_bad_paths, short_of_a_lease, soon};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// A value that no codec accepts.
#[derive(Debug)]
struct Stubborn;

impl Serialize for Stubborn {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it does not want to"))
    }
}

impl<'de> Deserialize<'de> for Stubborn {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

both_backends! {
    async fn a_queue_with_bad_settings_is_refused_when_it_is_created(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let before = server.front().trace().len();
        let with = || Queue::<u64>::builder(&client, QUEUE);
        refuses_bad_paths(|path| Queue::<u64>::new(&client, path));
        refuses_bad_paths(|path| SimpleQueue::new(&client, path));
        refuses_bad_paths(|path| with().layout(QueueLayout::Curator { lock_path: path.to_owned() }).build());
        refuses_bad_paths(|path| with().dead_letters(path).build());
        let lock_path = QUEUE.to_owned();
        for (builder, rule) in [
            (with().capacity(0), "a capacity of 0 must be at least 1"),
            (with().max_deliveries(0), "a limit of 0 deliveries must be at least 1"),
            (with().prefetch(0), "a prefetch of 0 must be from 1 to 1000"),
            (with().prefetch(1001), "a prefetch of 1001 must be from 1 to 1000"),
            (with().layout(QueueLayout::Curator { lock_path }), "must not be the queue's path"),
            (with().ordered().layout(QueueLayout::Curator { lock_path: "/l".to_owned() }), "native layout"),
        ] {
            let error = builder.build().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(rule), "{error}");
        }
        assert_eq!(frames_since(&server, before), 0);
    }

    async fn an_invalid_put_is_refused_and_nothing_is_stored(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let raw: Queue<Bytes> = Queue::builder_with(&client, QUEUE, Raw).build().unwrap();
        let limit = raw.max_item();
        let before = server.front().trace().len();
        for size in [limit + 1, 1_048_575, 2_000_000] {
            let error = soon(raw.put(&vec![0; size].into())).await.unwrap_err();
            assert!(matches!(&error, PutError::Core(error) if error.kind() == ErrorKind::TooLarge), "{error:?}");
            assert!(error.to_string().contains(&format!("{size} bytes, the limit is {limit}")), "{error}");
        }
        let simple = SimpleQueue::new(&client, "/simple").unwrap();
        assert_eq!(soon(simple.put(vec![0; 1_048_575])).await.unwrap_err().kind(), ErrorKind::TooLarge);
        let none = soon(raw.put_all(&[])).await.unwrap_err();
        assert!(none.to_string().contains("a batch of 0 items must be at least 1"), "{none}");
        for count in [0, 1001] {
            let error = soon(raw.take_batch(count)).await.unwrap_err();
            assert!(error.to_string().contains(&format!("a batch of {count} must be from 1 to 1000")), "{error}");
        }
        let error = soon(Delivery::<u64>::ack_all(Vec::new())).await.unwrap_err();
        assert!(matches!(&error, AckError::Core(error) if error.kind() == ErrorKind::InvalidInput), "{error:?}");
        let stubborn: Queue<Stubborn> = Queue::new(&client, QUEUE).unwrap();
        let error = soon(stubborn.put(&Stubborn)).await.unwrap_err();
        let PutError::Encode(cause) = &error else { panic!("{error:?}") };
        assert!(cause.detail().unwrap().contains("it does not want to"), "{cause:?}");
        let ephemeral = soon(queue(&client).put_ephemeral(&1)).await.unwrap_err();
        assert!(ephemeral.to_string().contains("ordered mode"), "{ephemeral}");
        assert_eq!(frames_since(&server, before), 0);
        // The largest item that fits into the queue also fits into the dead letters.
        let largest = Bytes::from(vec![b'x'; limit]);
        soon(raw.put(&largest)).await.unwrap();
        assert!(soon(queue(&client).try_take()).await.unwrap().is_none());
        assert_eq!(queue(&client).dead_letters().len().await.unwrap(), 1);
        soon(raw.put(&Bytes::new())).await.unwrap();
        assert_eq!(soon(raw.try_take()).await.unwrap().unwrap().item().len(), 0);
    }

    async fn debug_output_contains_no_item_data(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let jobs: Queue<String> = Queue::builder(&client, QUEUE)
            .max_deliveries(1)
            .redelivery_delay(Duration::ZERO, Duration::ZERO)
            .build()
            .unwrap();
        jobs.put(&"secret".to_owned()).await.unwrap();
        let delivery = soon(jobs.try_take()).await.unwrap().unwrap();
        let text = format!("{jobs:?} {delivery:?} {:?} {:?}", jobs.deliveries(), Queue::<u64>::builder(&client, "/q"));
        drop(delivery);
        assert!(soon(jobs.try_take()).await.unwrap().is_none());
        let letters = jobs.dead_letters().list().await.unwrap();
        let text = format!("{text} {letters:?} {:?}", jobs.dead_letters());
        assert!(letters.len() == 1 && !text.contains("secret") && text.contains("item-0000000000"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn taking_is_refused_when_the_session_timeout_is_below_four_ticks() {
    let server = Backend::Memory.start().await;
    let client = short_of_a_lease(&server).connect().await.unwrap();
    let jobs = queue(&client);
    jobs.put(&1).await.unwrap();
    for _ in 0..3 {
        assert_eq!(soon(jobs.take()).await.unwrap_err().kind(), ErrorKind::ShortLease);
    }
    let other = connect(&server).await;
    let delivery = soon(queue(&other).take()).await.unwrap();
    assert_eq!((*delivery.item(), delivery.deliveries()), (1, Some(1)), "a refused claim must not count");
}
