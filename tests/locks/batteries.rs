//! The mutex survives the batteries of faults, also if tasks share its tickets.

use crate::contender::{Kind, Locks};
use docent_battery::{Backend, battery, both_backends};
use futures_util::future::join_all;

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_lock(backend: Backend) {
        battery::lost_reply(&Locks::of(Kind::Mutex), &backend.start().await).await;
    }

    async fn a_future_dropped_at_any_poll_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&Locks::of(Kind::Mutex), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(backend: Backend) {
        battery::close(&Locks::of(Kind::Mutex), &backend.start().await).await;
    }

    async fn the_loss_of_a_lock_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&Locks::of(Kind::Mutex), &backend.start().await).await;
    }

    async fn a_black_holed_holder_learns_of_its_loss_before_the_next_grant(backend: Backend) {
        let runs = if backend != Backend::Real { 100 } else { 12 };
        battery::black_holes(&Locks::of(Kind::Mutex), &backend.start().await, runs).await;
    }

    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_shared_lock(backend: Backend) {
        battery::lost_reply(&Locks::of(Kind::Shared), &backend.start().await).await;
    }

    async fn a_future_of_a_shared_lock_dropped_at_any_poll_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&Locks::of(Kind::Shared), &backend.start().await).await;
    }

    async fn a_client_of_a_shared_lock_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(backend: Backend) {
        battery::close(&Locks::of(Kind::Shared), &backend.start().await).await;
    }

    async fn the_loss_of_a_shared_lock_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&Locks::of(Kind::Shared), &backend.start().await).await;
    }

    async fn a_shutdown_notifies_the_holder_of_every_kind_of_lock(backend: Backend) {
        // Readers share the lock, so a writer waits for the reader.
        let readers = [Kind::Read, Kind::Downgraded].map(|first| Locks::with_first(first, Kind::Write));
        let run = async |locks: Locks| battery::shutdown(&locks, &backend.start().await).await;
        join_all(Kind::EXCLUSIVE.map(Locks::of).into_iter().chain(readers).map(run)).await;
    }
}
