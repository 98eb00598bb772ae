//! Table of the public types by the traits that users rely on, and of the futures by what they borrow. It is
//! the compiler that reads it: a row that does not hold does not compile.

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

/// Handles, builders and values: kept in shared state, cloned into tasks, printed.
const fn shared<T: Clone + Debug + Send + Sync + Unpin + 'static>() {}

/// Guards, and all else that is one thing only: as [`shared`], and not `Clone`, as [`unique!`] sees to.
const fn owned<T: Debug + Send + Sync + Unpin + 'static>() {}

/// Streams: read by one, and kept in shared state beside what else their handle can do.
const fn stream<T: Stream + Debug + Send + Sync + Unpin + 'static>() {}

/// Errors: sent with `?` from any task, and told to several.
const fn error<T: Error + Clone + Send + Sync + Unpin + 'static>() {}

/// Types that are neither of these, with the reason beside their row.
const fn sent<T: Send + 'static>() {}

/// A future that borrows nothing: it can be spawned as it is.
fn free<F: Future + Send + 'static>(future: F) {
    drop(future);
}

/// A future that borrows what it was asked of. `async move { x.method().await }` can be spawned.
fn borrows<F: Future + Send>(future: F) {
    drop(future);
}

/// Two ways to `it` for a type that is `Clone`, which no compiler can choose from.
trait NotClone<A> {
    fn it() {}
}

impl<T> NotClone<()> for T {}

impl<T: Clone> NotClone<u8> for T {}

/// One row for each type, of one kind.
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
