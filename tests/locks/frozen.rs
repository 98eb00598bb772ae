//! Holders of every kind of lock whose process is suspended.

use crate::contender::{Kind, Locks};
use docent_battery::{Backend, battery, both_backends_in_real_time};
use futures_util::future::join_all;

both_backends_in_real_time! {
    async fn a_resumed_holder_learns_at_its_first_use_whether_it_still_holds(backend: Backend) {
        let kinds = [Kind::Mutex, Kind::Shared, Kind::Permit, Kind::MultiRead, Kind::Write, Kind::Downgraded];
        // A writer waits for the reader.
        let reader = Locks::with_first(Kind::Read, Kind::Write);
        let locks: Vec<_> = kinds.map(Locks::of).into_iter().chain([reader]).collect();
        let server = backend.start().await;
        join_all(locks.iter().map(|lock| battery::freezes(lock, &server))).await;
    }
}
