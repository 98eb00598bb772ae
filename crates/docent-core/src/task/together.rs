use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use std::collections::HashMap;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};

/// Answer that several wait for; `None` where its code panicked.
type Answer<T> = BoxFuture<'static, Option<T>>;

/// Questions under way, by key: those who ask the same one meanwhile get the same answer.
///
/// An answer goes on for as long as somebody waits for it.
pub(crate) struct Together<K, T>(Mutex<HashMap<K, WeakShared<Answer<T>>>>);

impl<K, T> Default for Together<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, T: Clone + Send + 'static> Together<K, T> {
    /// The answer under way for `key`; else `ask` begins it. `None` where that panicked: a panic is told to
    /// all who wait.
    pub(crate) fn ask(&self, key: K, ask: impl FnOnce() -> BoxFuture<'static, T>) -> Shared<Answer<T>> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let under_way = asked.get(&key).and_then(WeakShared::upgrade);
        if let Some(under_way) = under_way.filter(|under_way| under_way.peek().is_none()) {
            return under_way;
        }
        if asked.len() == asked.capacity() {
            // Those that have ended are forgotten before the table would grow.
            asked.retain(|_, answer| answer.upgrade().is_some());
        }
        let answer = AssertUnwindSafe(ask()).catch_unwind().map(Result::ok).boxed().shared();
        asked.extend(answer.downgrade().map(|weak| (key, weak)));
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
    async fn those_who_ask_meanwhile_get_the_same_answer_and_later_ones_another() {
        let (together, asked) = (Together::default(), Cell::new(0));
        let ask = |key: &str| {
            together.ask(key.to_owned(), || {
                asked.set(asked.get() + 1);
                let number = asked.get();
                async move {
                    tokio::task::yield_now().await;
                    number
                }
                .boxed()
            })
        };
        let (first, second, other) = (ask("a"), ask("a"), ask("b"));
        assert_eq!((first.await, second.await, other.await), (Some(1), Some(1), Some(2)));
        assert_eq!(ask("a").await, Some(3));
    }

    #[tokio::test]
    async fn a_panic_is_told_to_all_who_wait_and_the_next_one_asks_again() {
        let together = Together::<_, u8>::default();
        let ask = || together.ask("a".to_owned(), || async { panic!("of a hook") }.boxed());
        let (first, second) = (ask(), ask());
        assert_eq!((first.await, second.await), (None, None));
        assert_eq!(together.ask("a".to_owned(), || async { 1 }.boxed()).await, Some(1));
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waits_for_is_dropped() {
        let together = Together::<_, u8>::default();
        let mut never = together.ask("a".to_owned(), || pending().boxed());
        assert!(poll!(&mut never).is_pending());
        drop(never);
        assert_eq!(together.ask("a".to_owned(), || async { 1 }.boxed()).await, Some(1));
        for key in 0..1_000 {
            drop(together.ask(key.to_string(), || pending().boxed()));
        }
        assert!(together.0.lock().unwrap().len() < 10);
    }
}
