//! Batteries of faults that every recipe with a guard must withstand: locks, permits, leadership, deliveries.
//!
//! A recipe implements [`Recipe`] and [`Contender`]. The batteries do the rest, on a server of either
//! [`Backend`](crate::Backend):
//!
//! - [`lost_reply`]: for each request between acquire and release, found by recording a run, the link
//!   breaks before or after the request, the reply is lost, or the session ends while the client cannot learn
//!   of it.
//! - [`cancel`]: the futures of acquire, verify and release are dropped at every poll and with every reply
//!   outstanding.
//! - [`close`]: the client is closed at every poll of these futures.
//! - [`loss`]: the holder is cut off in several ways, its session is ended, or its node is deleted.
//!   [`black_holes`] does the first a hundred times, at different moments.
//! - [`freezes`]: the process of the holder is suspended.
//! - [`shutdown`]: the client of a holder is shut down. The holder is asked to give up its hold, and its
//!   work has time to stop.
//!
//! For recipes without a guard the parts are available: a [`Break`] of the link at a request that was
//! [`RoundRequest`], [`poll_times`], [`abandon_at`] and [`longest_pause`].
//!
//! Each battery runs many cases, several at a time and each below its own path, and panics at the end with
//! all failures. Call the batteries from a test on tokio's current-thread runtime, because [`close`] counts
//! tasks.
//!
//! # Examples
//!
//! The code of a recipe, and a test. The mutex's implementation is in `tests/locks/batteries.rs`.
//!
//! ```ignore
//! use docent::{Client, Error, ErrorKind, Fence, Mutex, locks::{AcquireError, MutexGuard}};
//! use docent_battery::battery::{Contender, ContenderSetup, Fault, Recipe, Step, lost_reply};
//!
//! struct Locks;
//! struct Locker { client: Client, mutex: Mutex, namespace: String }
//!
//! impl Recipe for Locks {
//!     type Contender = Locker;
//!
//!     async fn contender(&self, setup: &ContenderSetup) -> Locker {
//!         let client = Client::builder(&setup.connect_string)
//!             .namespace(&setup.namespace)
//!             .session_timeout(setup.session_timeout)
//!             .server_tick(setup.tick)
//!             .connect().await.unwrap();
//!         let mutex = Mutex::new(&client, "/lock").unwrap();
//!         Locker { mutex, client, namespace: setup.namespace.clone() }
//!     }
//!
//!     fn folder(&self) -> &str { "/lock" }
//!
//!     // A waiter watches its predecessor and its own node.
//!     fn waits(&self, trace: &[Traced]) -> bool { answered(trace, OpCode::GetData) >= 2 }
//!
//!     // Returns which errors the documentation allows at each step.
//!     fn permits(&self, step: Step, fault: Fault, error: &Error) -> bool { /* … */ }
//! }
//!
//! impl Contender for Locker { /* acquire, verify, release, is_held, … */ }
//!
//! both_backends! {
//!     async fn a_lost_reply_never_doubles_or_drops_a_lock(backend: Backend) {
//!         lost_reply(&Locks, &backend.start().await).await;
//!     }
//! }
//! ```

mod arena;
mod cancel;
mod cases;
mod close;
mod loss;
mod lost_reply;
mod recipe;
mod round;
mod round_request;
mod shutdown;

pub use cancel::cancel;
pub use cases::longest_pause;
pub use close::close;
pub use docent_testkit::{abandon_at, internals::poll_times};
pub use loss::{black_holes, freezes, loss};
pub use lost_reply::lost_reply;
pub use recipe::{Contender, ContenderSetup, Fault, Recipe, RunsAsProcess, ShutsDown, Step, unanswered};
pub use round_request::{BREAKS, Break, RoundRequest};
pub use shutdown::shutdown;
