//! The recipes on servers that know less than the current ZooKeeper: the batteries of faults, and what each
//! recipe is for.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod abilities;
#[path = "../election/contender.rs"]
mod candidates;
#[path = "../queue/contender.rs"]
mod consumers;
#[allow(dead_code, reason = "only some kinds are used here")]
#[path = "../locks/contender.rs"]
mod contender;
mod recipes;

use candidates::Elections;
use consumers::{Deliveries, Way};
use contender::{Kind, Locks};
use docent_battery::{Backend, Dialect, battery};

/// Runs each test in each dialect.
macro_rules! dialects {
    ($($(#[$attribute:meta])* async fn $name:ident($dialect:ident: Dialect) $body:block)+) => {
        $(
            $(#[$attribute])*
            async fn $name($dialect: docent_battery::Dialect) $body
        )+
        $crate::dialects! { @ zookeeper_3_5, ZooKeeper35, $($name)+ }
        $crate::dialects! { @ zookeeper_3_4, ZooKeeper34, $($name)+ }
        $crate::dialects! { @ keeper_2025, Keeper2025, $($name)+ }
        $crate::dialects! { @ keeper_2026, Keeper2026, $($name)+ }
    };
    (@ $module:ident, $dialect:ident, $($name:ident)+) => {
        mod $module {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() {
                    super::$name(docent_battery::Dialect::$dialect).await;
                }
            )+
        }
    };
}
pub(crate) use dialects;

/// Kinds of locks that are made of different requests.
const KINDS: [Kind; 4] = [Kind::Mutex, Kind::Shared, Kind::Permits, Kind::Multi];

dialects! {
    async fn a_lock_or_leadership_dropped_at_any_poll_leaves_nothing(dialect: Dialect) {
        for kind in KINDS {
            battery::cancel(&Locks::of(kind), &Backend::As(dialect).start().await).await;
        }
        battery::cancel(&Elections, &Backend::As(dialect).start().await).await;
    }

    async fn a_client_closed_at_any_poll_ends_every_future_its_session_and_its_tasks(dialect: Dialect) {
        battery::close(&Locks::of(Kind::Mutex), &Backend::As(dialect).start().await).await;
        battery::close(&Elections, &Backend::As(dialect).start().await).await;
        battery::close(&Deliveries(Way::Nack), &Backend::As(dialect).start().await).await;
    }

    async fn a_loss_is_noticed_in_time_and_is_final(dialect: Dialect) {
        for kind in [Kind::Mutex, Kind::Shared] {
            battery::loss(&Locks::of(kind), &Backend::As(dialect).start().await).await;
        }
        battery::loss(&Elections, &Backend::As(dialect).start().await).await;
        battery::loss(&Deliveries(Way::Nack), &Backend::As(dialect).start().await).await;
    }

    async fn a_shutdown_notifies_the_holder(dialect: Dialect) {
        battery::shutdown(&Locks::of(Kind::Mutex), &Backend::As(dialect).start().await).await;
        battery::shutdown(&Elections, &Backend::As(dialect).start().await).await;
        battery::shutdown(&Deliveries(Way::Ack), &Backend::As(dialect).start().await).await;
    }
}

/// The batteries that break links and expect the session to live on, which it does not in Keeper.
async fn with_restored_sessions(dialect: Dialect) {
    for way in [Way::Nack, Way::Ack] {
        battery::cancel(&Deliveries(way), &Backend::As(dialect).start().await).await;
        battery::lost_reply(&Deliveries(way), &Backend::As(dialect).start().await).await;
    }
    battery::lost_reply(&Locks::of(Kind::Mutex), &Backend::As(dialect).start().await).await;
    battery::lost_reply(&Elections, &Backend::As(dialect).start().await).await;
}

#[tokio::test(start_paused = true)]
async fn a_link_to_zookeeper_3_5_that_breaks_at_any_request_never_doubles_or_drops_anything() {
    with_restored_sessions(Dialect::ZooKeeper35).await;
}

#[tokio::test(start_paused = true)]
async fn a_link_to_zookeeper_3_4_that_breaks_at_any_request_never_doubles_or_drops_anything() {
    with_restored_sessions(Dialect::ZooKeeper34).await;
}
