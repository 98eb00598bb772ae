use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::collections::HashMap;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};

/// Answer that several callers wait for; `None` if the code that computes it panicked.
type Answer<T> = BoxFuture<'static, Option<T>>;

/// Requests in flight, by key: callers with the same key share one answer.
///
/// The computation of an answer continues for as long as a caller waits for it.
pub(crate) struct Coalescer<K, T>(Mutex<HashMap<K, WeakShared<Answer<T>>>>);

impl<K, T> Default for Coalescer<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, T: Clone + Send + 'static> Coalescer<K, T> {
    /// Returns the answer in flight for `key`, or runs `start` if there is none. The answer is `None` for all
    /// waiting callers if `start` panicked.
    pub(crate) fn join_or_start(
        &self,
        key: K,
        start: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Shared<Answer<T>> {
        let mut in_flight = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = in_flight.get(&key).and_then(WeakShared::upgrade);
        if let Some(under_way) = under_way.filter(|under_way| under_way.peek().is_none()) {
            return under_way;
        }
        if in_flight.len() == in_flight.capacity() {
            // Answers that have ended are removed before the table would grow.
            in_flight.retain(|_, answer| answer.upgrade().is_some());
        }
        let answer = AssertUnwindSafe(start()).catch_unwind().map(Result::ok).boxed().shared();
        in_flight.extend(answer.downgrade().map(|weak| (key, weak)));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use std::cell::Cell;
    use std::future::pending;

    #[tokio::test]
    async fn concurrent_callers_share_an_answer_and_later_callers_get_another() {
        let (coalescer, in_flight) = (Coalescer::default(), Cell::new(0));
        let request = |key: &str| {
            coalescer.join_or_start(key.to_owned(), || {
                in_flight.set(in_flight.get() + 1);
                let number = in_flight.get();
                async move {
                    tokio::task::yield_now().await;
                    number
                }
                .boxed()
            })
        };
        let (first, second, other) = (request("a"), request("a"), request("b"));
        assert_eq!((first.await, second.await, other.await), (Some(1), Some(1), Some(2)));
        assert_eq!(request("a").await, Some(3));
    }

    #[tokio::test]
    async fn a_panic_is_reported_to_all_waiting_callers_and_the_next_caller_retries() {
        let coalescer = Coalescer::<_, u8>::default();
        let request = || coalescer.join_or_start("a".to_owned(), || async { panic!("of a hook") }.boxed());
        let (first, second) = (request(), request());
        assert_eq!((first.await, second.await), (None, None));
        assert_eq!(coalescer.join_or_start("a".to_owned(), || async { 1 }.boxed()).await, Some(1));
    }

    #[tokio::test]
    async fn an_answer_without_a_waiting_caller_is_dropped() {
        let coalescer = Coalescer::<_, u8>::default();
        let mut never = coalescer.join_or_start("a".to_owned(), || pending().boxed());
        assert!(poll!(&mut never).is_pending());
        drop(never);
        assert_eq!(coalescer.join_or_start("a".to_owned(), || async { 1 }.boxed()).await, Some(1));
        for key in 0..1_000 {
            drop(coalescer.join_or_start(key.to_string(), || pending().boxed()));
        }
        assert!(coalescer.0.lock().unwrap().len() < 10);
    }
}
