//! Third-party clients on the embedded server and, for reference, on a real ZooKeeper: kazoo, ZooKeeper's
//! Java client and its shell, ZooKeeper's C client and its shell, and Curator under contention.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod access;
mod curator;
mod family;
mod links;
mod multi;
mod nodes;
mod shells;
mod watches;

/// Runs each test for each of the listed clients, on both backends: `name::kazoo::embedded` and so on. All of
/// them are ignored unless requested, because they need third-party programs.
macro_rules! for_clients {
    ($($families:tt async fn $name:ident($family:ident: Family, $backend:ident: Backend) $body:block)+) => {
        $(async fn $name($family: Family, $backend: Backend) $body)+

        $($crate::for_clients! { @each $name $families })+
    };
    (@each $name:ident [$($family:ident),+]) => {
        mod $name {
            $($crate::for_clients! { @one $name $family })+
        }
    };
    (@one $name:ident Kazoo) => { $crate::for_clients! { @on $name Kazoo kazoo } };
    (@one $name:ident Java) => { $crate::for_clients! { @on $name Java java } };
    (@one $name:ident C) => { $crate::for_clients! { @on $name C c } };
    (@on $name:ident $family:ident $module:ident) => {
        mod $module {
            use $crate::family::Family;
            use docent_battery::Backend;

            #[tokio::test]
            #[ignore = "needs third-party clients: run `cargo xtask test`"]
            async fn embedded() {
                super::super::$name(Family::$family, Backend::Embedded).await;
            }

            #[tokio::test]
            #[ignore = "needs third-party clients and a real ZooKeeper: run `cargo xtask test`"]
            async fn real() {
                super::super::$name(Family::$family, Backend::Real).await;
            }
        }
    };
}
use for_clients;
