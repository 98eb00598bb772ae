//! A permit survives the batteries of faults.

use crate::contender::{Kind, Locks};
use docent_battery::{Backend, battery, both_backends};

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_permit(backend: Backend) {
        battery::lost_reply(&Locks::of(Kind::Permit), &backend.start().await).await;
    }

    async fn a_waiter_for_a_permit_dropped_at_any_poll_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&Locks::of(Kind::Permit), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_waiter_for_a_permit_its_session_and_its_tasks(backend: Backend) {
        battery::close(&Locks::of(Kind::Permit), &backend.start().await).await;
    }

    async fn the_loss_of_a_permit_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&Locks::of(Kind::Permit), &backend.start().await).await;
    }

    async fn a_link_that_breaks_at_any_request_never_splits_or_doubles_several_permits(backend: Backend) {
        battery::lost_reply(&Locks::of(Kind::Permits), &backend.start().await).await;
    }

    async fn a_waiter_for_several_permits_dropped_at_any_poll_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&Locks::of(Kind::Permits), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_waiter_for_several_permits(backend: Backend) {
        battery::close(&Locks::of(Kind::Permits), &backend.start().await).await;
    }
}
