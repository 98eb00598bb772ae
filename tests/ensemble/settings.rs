//! A value that changes, and somebody who follows it.

use docent::config::Change;
use docent::{Client, Config, Subscription};
use docent_tests::soon;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PACE: Duration = Duration::from_millis(50);

/// One publishes numbers that rise, another one follows.
#[derive(Debug)]
pub(crate) struct Settings {
    config: Config<u64>,
    stop: CancellationToken,
    publisher: JoinHandle<u64>,
    follower: JoinHandle<Subscription<u64>>,
}

impl Settings {
    pub(crate) async fn start(publisher: &Client, follower: &Client) -> Self {
        let config = Config::new(publisher, "/settings").unwrap();
        soon(config.publish(&0)).await.unwrap();
        let subscription = soon(Config::new(follower, "/settings").unwrap().subscribe()).await.unwrap();
        let stop = CancellationToken::new();
        Self {
            publisher: tokio::spawn(publish(config.clone(), stop.clone())),
            follower: tokio::spawn(follow(subscription, stop.clone())),
            config,
            stop,
        }
    }

    /// Ends the publisher, and checks that the follower comes to the last value.
    pub(crate) async fn finish(self) {
        self.stop.cancel();
        let tried = soon(self.publisher).await.unwrap();
        let mut subscription = soon(self.follower).await.unwrap();
        let last = tried + 1;
        soon(self.config.publish(&last)).await.unwrap();
        soon(async {
            while **subscription.current() != last {
                subscription.changed().await.unwrap();
            }
        })
        .await;
        assert_eq!(subscription.refused(), 0);
    }
}

/// The last number that was tried.
async fn publish(config: Config<u64>, stop: CancellationToken) -> u64 {
    for value in 1.. {
        // Without a session it fails, and the next one is tried.
        let _ = config.publish(&value).await;
        if stop.run_until_cancelled(tokio::time::sleep(PACE)).await.is_none() {
            return value;
        }
    }
    unreachable!("numbers go on")
}

/// Checks that what is seen never goes back.
async fn follow(mut subscription: Subscription<u64>, stop: CancellationToken) -> Subscription<u64> {
    let mut newest = subscription.current();
    while let Some(change) = stop.run_until_cancelled(subscription.changed()).await {
        if let Some(Change::Value(seen)) = change {
            let zxids = [newest.revision(), seen.revision()].map(|revision| revision.unwrap().mzxid);
            assert!(zxids[0] < zxids[1] && newest.value() < seen.value(), "{newest:?} came before {seen:?}");
            newest = seen;
        }
    }
    subscription
}
