//! The names of services, their providers and their consumers.

use crate::scene::{behind_proxy, orders, registry};
use docent::{CreateMode, Instance};
use docent_battery::{Backend, both_backends};
use docent_tests::{SESSION, connect, soon};
use futures_util::StreamExt;

both_backends! {
    async fn names_are_listed_and_followed(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        let mut names = registry(&client).watch_names().unwrap();
        assert_eq!(soon(names.next()).await.unwrap().unwrap(), [] as [&str; 0]);
        assert!(soon(registry(&client).names()).await.unwrap().is_empty());
        let _one = soon(registry(&other).register(orders("1"))).await.unwrap();
        assert_eq!(soon(names.next()).await.unwrap().unwrap(), ["orders"]);
        proxy.cut().await;
        let _two = soon(registry(&other).register(orders("2"))).await.unwrap();
        let cart = soon(registry(&other).register(Instance::new("cart", "10.0.0.8", 80))).await.unwrap();
        proxy.heal().await.unwrap();
        assert_eq!(soon(names.next()).await.unwrap().unwrap(), ["cart", "orders"]);
        assert_eq!(soon(registry(&client).names()).await.unwrap(), ["cart", "orders"]);
        soon(cart.deregister()).await.unwrap();
        let _ = other.delete("/services/cart", None).await;
        assert_eq!(soon(names.next()).await.unwrap().unwrap(), ["orders"]);
        soon(client.close()).await;
        assert!(soon(names.next()).await.is_none());
    }

    async fn providers_and_consumers_of_a_service_are_distinguished(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _provider = soon(registry(&client).register(orders("1"))).await.unwrap();
        let checkout = Instance::new("checkout", "10.0.0.9", 9090).id("c1");
        let consumer = soon(registry(&client).consume("orders", checkout)).await.unwrap();
        assert_eq!(consumer.path(), "/services-consumers/orders/c1");
        let providers = soon(registry(&other).service("orders")).await.unwrap();
        let consumers = soon(registry(&other).consumers("orders")).await.unwrap();
        assert_eq!(providers.instances().iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["1"]);
        let one = consumers.instances().get("c1").cloned().unwrap();
        assert_eq!((one.name.as_str(), one.authority().as_deref()), ("checkout", Some("10.0.0.9:9090")));
        let mut changes = consumers.changes();
        soon(changes.next()).await;
        soon(consumer.deregister()).await.unwrap();
        soon(async { while !consumers.instances().is_empty() { changes.next().await.unwrap().unwrap(); } }).await;
        assert_eq!(soon(registry(&other).names()).await.unwrap(), ["orders"]);
    }

    async fn a_foreign_node_below_the_base_is_one_more_name(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        client.create("/services/legacy", "", CreateMode::Persistent).await.unwrap();
        assert_eq!(soon(registry(&client).names()).await.unwrap(), ["legacy"]);
        let view = soon(registry(&client).service("legacy")).await.unwrap();
        assert!(view.instances().is_empty() && view.pick().is_err());
    }
}
