//! Docent's recipes and kazoo's on the same nodes of the embedded server and of a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod barriers;
mod client;
mod config;
mod counter;
mod dubbo;
mod election;
mod inspect;
mod lock;
mod party;
mod rw_lock;
mod sasl;
mod semaphore;

/// Runs each test on both backends, as `embedded::name` and `real::name`. Both are ignored unless requested,
/// because they download kazoo.
macro_rules! beside_kazoo {
    ($(async fn $name:ident($backend:ident: Backend) $body:block)+) => {
        $(async fn $name($backend: Backend) $body)+

        mod embedded {
            $(
                #[tokio::test]
                #[ignore = "needs kazoo: run `cargo xtask test`"]
                async fn $name() {
                    super::$name(docent_battery::Backend::Embedded).await;
                }
            )+
        }

        mod real {
            $(
                #[tokio::test]
                #[ignore = "needs a real ZooKeeper and kazoo: run `cargo xtask test`"]
                async fn $name() {
                    super::$name(docent_battery::Backend::Real).await;
                }
            )+
        }
    };
}
use beside_kazoo;
