//! Batteries of faults that every recipe with a guard has to stand: locks, permits, leadership, deliveries.
//!
//! A recipe implements [`Recipe`] and [`Contender`]; the batteries do the rest, on a server of either
//! [`Backend`](crate::Backend):
//!
//! - [`lost_reply`]: for each request between acquire and release, found by recording a run, the link breaks
//!   before it, after it, its reply is lost, or the session ends while the client cannot know.
//! - [`cancel`]: the futures of acquire, verify and release are dropped at every poll and with every reply
//!   outstanding.
//! - [`close`]: the client is closed at every poll of those futures.
//! - [`loss`]: the holder is cut off in all ways, its session is ended, its node deleted;
//!   [`black_holes`] does the first of these a hundred times, at all moments.
//! - [`freezes`]: the process of the holder stands still.
//! - [`shutdown`]: the client of a holder is shut down: the holder is asked to give up, and its work has time
//!   to stop.
//!
//! For recipes without a guard there are their parts: a [`Break`] of the link at a request that was
//! [`Asked`], [`poll_times`], [`abandon_at`] and [`longest_pause`].
//!
//! Each battery runs many cases, several at a time and each below a path of its own, and panics at the end
//! with all failures. Call them from a test on tokio's current-thread runtime: [`close`] counts tasks.
//!
//! # Examples
//! The code of a recipe, and a test; the mutex's are in `tests/locks/batteries.rs`:
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
//!     // A waiter watches the one ahead and its own node.
//!     fn waits(&self, trace: &[Traced]) -> bool { answered(trace, OpCode::GetData) >= 2 }
//!
//!     // Which errors are documented for what.
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
mod asked;
mod cancel;
mod cases;
mod close;
mod loss;
mod lost_reply;
mod recipe;
mod round;
mod shutdown;

pub use asked::{Asked, BREAKS, Break};
pub use cancel::cancel;
pub use cases::longest_pause;
pub use close::close;
pub use docent_testkit::{abandon_at, internals::poll_times};
pub use loss::{black_holes, freezes, loss};
pub use lost_reply::lost_reply;
pub use recipe::{Contender, ContenderSetup, Fault, Recipe, RunsAsProcess, ShutsDown, Step, unanswered};
pub use shutdown::shutdown;
