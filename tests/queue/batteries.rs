//! Deliveries survive the batteries of faults, when they are given back and when they are acknowledged.

use crate::contender::{Deliveries, Way};
use docent_battery::{Backend, battery, both_backends};

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_delivery(backend: Backend) {
        battery::lost_reply(&Deliveries(Way::Nack), &backend.start().await).await;
    }

    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_an_acknowledgement(backend: Backend) {
        battery::lost_reply(&Deliveries(Way::Ack), &backend.start().await).await;
    }

    async fn a_future_dropped_at_any_poll_gives_the_item_back_and_leaves_the_line(backend: Backend) {
        battery::cancel(&Deliveries(Way::Nack), &backend.start().await).await;
    }

    async fn an_acknowledgement_dropped_at_any_poll_is_applied_or_gives_the_item_back(backend: Backend) {
        battery::cancel(&Deliveries(Way::Ack), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(backend: Backend) {
        battery::close(&Deliveries(Way::Nack), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_of_an_acknowledgement_ends_it(backend: Backend) {
        battery::close(&Deliveries(Way::Ack), &backend.start().await).await;
    }

    async fn the_loss_of_a_delivery_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&Deliveries(Way::Nack), &backend.start().await).await;
    }

    async fn a_lost_delivery_cannot_be_acknowledged(backend: Backend) {
        battery::loss(&Deliveries(Way::Ack), &backend.start().await).await;
    }

    async fn a_consumer_is_notified_of_a_shutdown_and_gives_its_item_back(backend: Backend) {
        battery::shutdown(&Deliveries(Way::Nack), &backend.start().await).await;
    }

    async fn a_consumer_is_notified_of_a_shutdown_and_finishes_its_item(backend: Backend) {
        battery::shutdown(&Deliveries(Way::Ack), &backend.start().await).await;
    }
}
