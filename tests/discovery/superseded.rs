//! Updates superseded by later updates, in Dubbo's layout, where the data is part of the node's name.

use crate::layout::{registry, version, versions};
use docent::discovery::{Registration, ServiceType};
use docent::recipe::KeptNode;
use docent::{Client, CreateMode, Instance};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon};
use futures_util::poll;
use serde::Serialize;

async fn registered<P: Serialize>(client: &Client, instance: Instance<P>) -> Registration {
    soon(registry(client).register(instance)).await.unwrap()
}

/// Starts an operation that needs the servers.
macro_rules! started {
    ($future:expr) => {{
        let mut future = Box::pin($future);
        assert!(poll!(&mut future).is_pending());
        future
    }};
}

both_backends! {
    async fn a_superseded_update_completes_with_the_update_that_superseded_it(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lasting = |name: &str| version(name).service_type(ServiceType::Permanent);
        let registration = registered(&client, lasting("1")).await;
        for (before, last) in [("2", "3"), ("4", "5")] {
            // The first update writes, and the others wait for it. Later no update needs the node that they
            // wait for, and no other update writes the wanted node.
            let first = started!(registration.update(lasting(before)));
            let second = started!(registration.update(lasting(before)));
            let announced = started!(registration.announced());
            let superseding = started!(registration.update(lasting(last)));
            drop((first, superseding));
            if last == "3" {
                drop(announced);
                soon(second).await.unwrap();
            } else {
                drop(second);
                soon(announced).await.unwrap();
            }
            assert_eq!(versions(&other).await, [last]);
        }
        soon(registration.deregister()).await.unwrap();
        assert_eq!(versions(&other).await, [""; 0]);
    }

    async fn a_superseded_version_can_be_announced_again_while_earlier_updates_are_pending(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = registered(&client, version("1")).await;
        let parked = started!(registration.update(version("2")));
        soon(registration.update(version("3"))).await.unwrap();
        assert_eq!(versions(&other).await, ["3"]);
        soon(registration.update(version("2"))).await.unwrap();
        assert_eq!(versions(&other).await, ["2"]);
        soon(parked).await.unwrap();
        assert_eq!(versions(&other).await, ["2"]);
        // The same happens if the superseding update was dropped.
        let update = started!(registration.update(version("4")));
        let parked = started!(registration.announced());
        drop(update);
        drop(started!(registration.update(version("5"))));
        soon(async { while versions(&other).await != ["5"] {} }).await;
        soon(registration.update(version("4"))).await.unwrap();
        soon(parked).await.unwrap();
        assert_eq!(versions(&other).await, ["4"]);
    }

    async fn the_old_node_stays_while_an_update_is_pending(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = registered(&client, version("1")).await;
        let old = registration.path();
        // Another client's node prevents the creation.
        let occupied = old.replace("version%3D1", "version%3D2");
        other.create(&occupied, "", CreateMode::Ephemeral).await.unwrap();
        let still_exists = async || {
            // This would wait for the deletion if a deletion were pending.
            soon(KeptNode::wait_vacant(&client, &old)).await.unwrap();
            assert!(other.exists(&old).await.unwrap().is_some());
        };
        let (first, second) = (started!(registration.update(version("2"))), started!(registration.update(version("2"))));
        drop(first);
        still_exists().await;
        let superseding = started!(registration.update(version("3")));
        let again = started!(registration.update(version("2")));
        drop(superseding);
        still_exists().await;
        drop(again);
        still_exists().await;
        drop(second);
        soon(KeptNode::wait_vacant(&client, &old)).await.unwrap();
        assert_eq!(other.exists(&old).await.unwrap(), None);
        other.delete(&occupied, None).await.unwrap();
        soon(registration.announced()).await.unwrap();
        soon(async { while versions(&other).await != ["2"] {} }).await;
    }
}
