//! Tables of the public types by the traits that users rely on, and of the futures by what they borrow. The
//! compiler checks the tables: a row that does not hold does not compile.

mod core;
mod futures;
mod inspect;
mod queue;
mod recipes;
mod testkit;

use futures_util::Stream;
use std::error::Error;
use std::fmt::Debug;
use std::future::Future;

/// Handles, builders and values, which are kept in shared state, cloned into tasks, and printed.
const fn shared<T: Clone + Debug + Send + Sync + Unpin + 'static>() {}

/// Guards and other types that must not be cloned: like [`shared`], but not `Clone`, which [`unique!`]
/// checks.
const fn owned<T: Debug + Send + Sync + Unpin + 'static>() {}

/// Streams, which have one reader and are kept in shared state with their handle's other functions.
const fn stream<T: Stream + Debug + Send + Sync + Unpin + 'static>() {}

/// Errors, which are returned with `?` from any task and may be reported to several callers.
const fn error<T: Error + Clone + Send + Sync + Unpin + 'static>() {}

/// Types that belong to none of these groups, with the reason beside their row.
const fn sent<T: Send + 'static>() {}

/// Accepts a future that borrows nothing and can be spawned directly.
fn free<F: Future + Send + 'static>(future: F) {
    drop(future);
}

/// Accepts a future that borrows its receiver. `async move { x.method().await }` can be spawned.
fn borrows<F: Future + Send>(future: F) {
    drop(future);
}

/// Trait whose `it` is ambiguous for a type that is `Clone`, so that a row with such a type does not compile.
trait NotClone<A> {
    fn it() {}
}

impl<T> NotClone<()> for T {}

impl<T: Clone> NotClone<u8> for T {}

/// One row for each type of a kind.
macro_rules! rows {
    ($kind:ident: $($(#[$feature:meta])* $row:ty),+ $(,)?) => {
        $($(#[$feature])* const _: () = $crate::$kind::<$row>();)+
    };
}

/// Rows of types that are not `Clone`.
macro_rules! unique {
    ($($row:ty),+ $(,)?) => {
        $(const _: () = $crate::owned::<$row>();
        const _: fn() = <$row as $crate::NotClone<_>>::it;)+
    };
}

pub(crate) use {rows, unique};
