//! Leadership under the batteries of faults.

use crate::contender::Elections;
use docent_battery::{Backend, battery, both_backends};

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_leadership(backend: Backend) {
        battery::lost_reply(&Elections, &backend.start().await).await;
    }

    async fn a_future_dropped_at_any_poll_leaves_nothing_and_leaves_the_line(backend: Backend) {
        battery::cancel(&Elections, &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(backend: Backend) {
        battery::close(&Elections, &backend.start().await).await;
    }

    async fn the_loss_of_a_leadership_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&Elections, &backend.start().await).await;
    }

    async fn a_leader_is_notified_of_a_shutdown(backend: Backend) {
        battery::shutdown(&Elections, &backend.start().await).await;
    }

    async fn a_black_holed_leader_learns_of_its_loss_before_the_next_one_leads(backend: Backend) {
        let runs = if backend != Backend::Real { 100 } else { 12 };
        battery::black_holes(&Elections, &backend.start().await, runs).await;
    }
}
