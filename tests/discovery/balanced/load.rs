use futures_util::future::{BoxFuture, join_all};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Sends one request, and returns the id of the copy that answered, or the error.
pub(super) type Caller = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Requests of a period, in the order in which they were sent.
#[derive(Debug)]
pub(super) struct Requests {
    /// Duration and outcome of each request.
    pub(super) ends: Vec<(Duration, Result<String, String>)>,
}

/// Sends 200 requests per second, whether or not they are answered, until `during` ends. Waits for all of
/// them.
pub(super) async fn send<T>(call: &Caller, during: impl Future<Output = T>) -> (Requests, T) {
    let mut under_way = Vec::new();
    let mut beat = interval(Duration::from_millis(5));
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(during);
    let result = loop {
        tokio::select! {
            result = &mut during => break result,
            _ = beat.tick() => {
                let call = call();
                under_way.push(tokio::spawn(async move {
                    let sent = Instant::now();
                    let end = call.await;
                    (sent.elapsed(), end)
                }));
            }
        }
    };
    let ends = join_all(under_way).await.into_iter().map(Result::unwrap).collect();
    (Requests { ends }, result)
}

impl Requests {
    pub(super) fn failed(&self) -> Vec<&String> {
        self.ends.iter().filter_map(|(_, end)| end.as_ref().err()).collect()
    }

    /// Number of answers by each copy's id.
    pub(super) fn answers(&self) -> BTreeMap<&str, usize> {
        let mut answers = BTreeMap::new();
        for id in self.ends.iter().filter_map(|(_, end)| end.as_ref().ok()) {
            *answers.entry(id.as_str()).or_default() += 1;
        }
        answers
    }

    /// Number of requests that took longer than `time`.
    pub(super) fn longer_than(&self, time: Duration) -> usize {
        self.ends.iter().filter(|(took, _)| *took > time).count()
    }

    /// Fails if more than one request in a hundred failed.
    pub(super) fn check(&self) {
        let failed = self.failed();
        assert!(failed.len() * 100 <= self.ends.len(), "of {}: {failed:?}", self.ends.len());
    }
}
