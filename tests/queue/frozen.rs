//! Consumers whose process is suspended.

use crate::contender::{Deliveries, Way};
use docent_battery::{Backend, battery, both_backends_in_real_time};

both_backends_in_real_time! {
    async fn a_resumed_consumer_learns_at_its_first_use_whether_it_still_has_the_item(backend: Backend) {
        battery::freezes(&Deliveries(Way::Nack), &backend.start().await).await;
    }
}
