//! Both guards survive the batteries of faults.

use crate::contender::{Kind, Locks};
use docent_battery::{Backend, battery, both_backends};

/// A writer among writers.
fn writers() -> Locks {
    Locks::of(Kind::Write)
}

/// Readers, each behind a writer that comes first.
fn readers() -> Locks {
    Locks::with_first(Kind::Write, Kind::Read)
}

/// Writers that become readers, among contenders of the same kind. The next writer waits for the reader.
fn downgraded() -> Locks {
    Locks::of(Kind::Downgraded)
}

both_backends! {
    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_downgraded_lock(backend: Backend) {
        battery::lost_reply(&downgraded(), &backend.start().await).await;
    }

    async fn a_writer_dropped_at_any_poll_of_its_downgrade_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&downgraded(), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_of_a_downgrade_ends_it_its_session_and_its_tasks(backend: Backend) {
        battery::close(&downgraded(), &backend.start().await).await;
    }

    async fn the_loss_of_a_downgraded_lock_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&downgraded(), &backend.start().await).await;
    }

    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_write_lock(backend: Backend) {
        battery::lost_reply(&writers(), &backend.start().await).await;
    }

    async fn a_link_that_breaks_at_any_request_never_doubles_or_drops_a_read_lock(backend: Backend) {
        battery::lost_reply(&readers(), &backend.start().await).await;
    }

    async fn a_writer_dropped_at_any_poll_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&writers(), &backend.start().await).await;
    }

    async fn a_reader_dropped_at_any_poll_leaves_nothing_and_frees_the_place(backend: Backend) {
        battery::cancel(&readers(), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_writer_its_session_and_its_tasks(backend: Backend) {
        battery::close(&writers(), &backend.start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_reader_its_session_and_its_tasks(backend: Backend) {
        battery::close(&readers(), &backend.start().await).await;
    }

    async fn the_loss_of_a_write_lock_is_noticed_in_time_and_is_final(backend: Backend) {
        battery::loss(&writers(), &backend.start().await).await;
    }

    async fn the_loss_of_a_read_lock_is_noticed_before_a_writer_holds_and_is_final(backend: Backend) {
        // The reader comes first here, and a writer waits for it.
        battery::loss(&Locks::with_first(Kind::Read, Kind::Write), &backend.start().await).await;
    }
}
