//! A value that changes, and a client that follows it.

use docent::config::Change;
use docent::{Client, Config, Subscription};
use docent_tests::soon;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PACE: Duration = Duration::from_millis(50);

/// A publisher of rising numbers, and a follower.
#[derive(Debug)]
pub(crate) struct Settings {
    config: Config<u64>,
    stop: CancellationToken,
    publisher: JoinHandle<Published>,
    /// The subscription, and the number of values that it received.
    follower: JoinHandle<(Subscription<u64>, usize)>,
}

impl Settings {
    pub(crate) async fn start(publisher: &Client, follower: &Client) -> Self {
        let config = Config::new(publisher, "/settings").unwrap();
        soon(config.publish(&0)).await.unwrap();
        soon(follower.sync("/settings")).await.unwrap();
        let subscription = soon(Config::new(follower, "/settings").unwrap().subscribe()).await.unwrap();
        let stop = CancellationToken::new();
        Self {
            publisher: tokio::spawn(publish(config.clone(), stop.clone())),
            follower: tokio::spawn(follow(subscription, stop.clone())),
            config,
            stop,
        }
    }

    /// Ends the publisher, and checks that the follower receives the last value. Returns true if every value
    /// was published.
    pub(crate) async fn finish(self) -> bool {
        self.stop.cancel();
        let published = soon(self.publisher).await.unwrap();
        let (mut subscription, seen) = soon(self.follower).await.unwrap();
        assert!(seen > 0, "no value changed during the test");
        let last = published.tried + 1;
        soon(self.config.publish(&last)).await.unwrap();
        soon(async {
            while **subscription.current() != last {
                let _ = subscription.changed().await.unwrap();
            }
        })
        .await;
        assert_eq!(subscription.refused(), 0);
        published.failed == 0
    }
}

async fn publish(config: Config<u64>, stop: CancellationToken) -> Published {
    let mut published = Published { tried: 0, failed: 0 };
    while stop.run_until_cancelled(tokio::time::sleep(PACE)).await.is_some() {
        published.tried += 1;
        // The outcome of a publish may be unknown if the session ends meanwhile. The publisher then continues
        // with the next number.
        if let Err(error) = config.publish(&published.tried).await {
            assert!(error.may_have_applied(), "{error}");
            published.failed += 1;
        }
    }
    published
}

#[derive(Debug)]
struct Published {
    /// The last number that the publisher tried to publish.
    tried: u64,
    /// Number of publishes with an unknown outcome.
    failed: u64,
}

/// Checks that the received values never go back.
async fn follow(mut subscription: Subscription<u64>, stop: CancellationToken) -> (Subscription<u64>, usize) {
    let (mut newest, mut count) = (subscription.current(), 0);
    while let Some(change) = stop.run_until_cancelled(subscription.changed()).await {
        if let Ok(Change::Value(seen)) = change.unwrap() {
            let zxids = [newest.revision(), seen.revision()].map(|revision| revision.unwrap().mzxid);
            assert!(
                zxids[0] < zxids[1] && newest.value() < seen.value(),
                "{newest:?} was received before {seen:?}"
            );
            (newest, count) = (seen, count + 1);
        }
    }
    (subscription, count)
}
