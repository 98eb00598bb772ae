//! Updates that others supersede, in Dubbo's layout, where the data is the node's name.

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

/// Begins something, which needs the servers.
macro_rules! begun {
    ($future:expr) => {{
        let mut future = Box::pin($future);
        assert!(poll!(&mut future).is_pending());
        future
    }};
}

both_backends! {
    async fn who_waits_for_what_was_superseded_waits_for_what_superseded_it(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let lasting = |name: &str| version(name).service_type(ServiceType::Permanent);
        let registration = registered(&client, lasting("1")).await;
        for (before, last) in [("2", "3"), ("4", "5")] {
            // The first writes, the others wait for it. Then nobody wants the node that they wait for, and
            // nobody else writes the wanted one.
            let first = begun!(registration.update(lasting(before)));
            let second = begun!(registration.update(lasting(before)));
            let announced = begun!(registration.announced());
            let superseding = begun!(registration.update(lasting(last)));
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

    async fn what_was_superseded_goes_and_may_be_said_again_while_others_still_look_at_it(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = registered(&client, version("1")).await;
        let parked = begun!(registration.update(version("2")));
        soon(registration.update(version("3"))).await.unwrap();
        assert_eq!(versions(&other).await, ["3"]);
        soon(registration.update(version("2"))).await.unwrap();
        assert_eq!(versions(&other).await, ["2"]);
        soon(parked).await.unwrap();
        assert_eq!(versions(&other).await, ["2"]);
        // The same where nobody waits for the update that superseded it.
        let update = begun!(registration.update(version("4")));
        let parked = begun!(registration.announced());
        drop(update);
        drop(begun!(registration.update(version("5"))));
        soon(async { while versions(&other).await != ["5"] {} }).await;
        soon(registration.update(version("4"))).await.unwrap();
        soon(parked).await.unwrap();
        assert_eq!(versions(&other).await, ["4"]);
    }

    async fn the_old_one_stays_as_long_as_anybody_waits_for_an_update(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = registered(&client, version("1")).await;
        let old = registration.path();
        // Somebody else's node keeps it from being made.
        let occupied = old.replace("version%3D1", "version%3D2");
        other.create(&occupied, "", CreateMode::Ephemeral).await.unwrap();
        let stays = async || {
            // Would wait until it is gone if it were about to go.
            soon(KeptNode::wait_vacant(&client, &old)).await.unwrap();
            assert!(other.exists(&old).await.unwrap().is_some());
        };
        let (first, second) = (begun!(registration.update(version("2"))), begun!(registration.update(version("2"))));
        drop(first);
        stays().await;
        let superseding = begun!(registration.update(version("3")));
        let again = begun!(registration.update(version("2")));
        drop(superseding);
        stays().await;
        drop(again);
        stays().await;
        drop(second);
        soon(KeptNode::wait_vacant(&client, &old)).await.unwrap();
        assert_eq!(other.exists(&old).await.unwrap(), None);
        other.delete(&occupied, None).await.unwrap();
        soon(registration.announced()).await.unwrap();
        soon(async { while versions(&other).await != ["2"] {} }).await;
    }
}
