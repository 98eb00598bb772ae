//! Dubbo's layout.

use crate::scene::until_deleted;
use docent::discovery::{Registration, RegistryLayout, ServiceChange, ServiceType};
use docent::{Client, CreateMode, ErrorKind, Instance, Registry};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{builder, connect, soon, until};
use futures_util::StreamExt;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

const NAME: &str = "com.shop.Orders";
const PROVIDERS: &str = "/dubbo/com.shop.Orders/providers";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parameters {
    version: String,
}

pub(crate) fn registry(client: &Client) -> Registry {
    Registry::builder(client, "/dubbo").layout(RegistryLayout::Dubbo).build().unwrap()
}

fn provider() -> Instance<Parameters> {
    let mut provider =
        Instance::new(NAME, "10.0.0.7", 20880).id("p1").payload(Parameters { version: "1.0".into() });
    provider.registered_at_ms = 5;
    provider
}

pub(crate) fn version(version: &str) -> Instance<Parameters> {
    provider().payload(Parameters { version: version.to_owned() })
}

/// Returns the announced versions.
pub(crate) async fn versions(client: &Client) -> Vec<String> {
    // The servers delete the folder when it is empty.
    let names = client.children(PROVIDERS).await.map_or_else(|_| Vec::new(), |children| children.names);
    let version = |name: &String| name.split("version%3D").nth(1).unwrap().to_owned();
    names.iter().map(version).collect()
}

/// Repeats the newest update until it succeeds.
async fn until_announced(registration: &Registration) {
    soon(async { while registration.announced().await.is_err() {} }).await;
}

const FIRST: &str = "dubbo%3A%2F%2F10.0.0.7%3A20880%2Fcom.shop.Orders%3Fapplication%3Dcom.shop.Orders%26category%3Dproviders%26dubbo%3D2.0.2%26id%3Dp1%26interface%3Dcom.shop.Orders%26methods%3D*%26revision%3D1.0%26side%3Dprovider%26timestamp%3D5%26version%3D1.0";

both_backends! {
    async fn providers_and_consumers_are_urls_below_their_service(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(registry(&client).register(provider())).await.unwrap();
        let node = other.get(&format!("{PROVIDERS}/{FIRST}")).await.unwrap();
        assert_eq!((node.data.len(), node.stat.owner), (0, client.session_id()));
        for folder in ["configurators", "routers"] {
            assert!(other.exists(&format!("/dubbo/{NAME}/{folder}")).await.unwrap().is_some());
        }
        let user = Instance::new("checkout", "10.0.0.9", 1).id("c1");
        let consumer = soon(registry(&client).consume(NAME, user)).await.unwrap();
        assert!(consumer.path().starts_with("/dubbo/com.shop.Orders/consumers/consumer%3A%2F%2F10.0.0.9%3A1%2F"), "{}", consumer.path());
        assert_eq!(soon(registry(&other).names()).await.unwrap(), [NAME]);
        let view = soon(registry(&other).typed_service::<Parameters>(NAME)).await.unwrap();
        let instances = view.instances();
        let one = instances.iter().next().unwrap();
        assert_eq!((one.id.as_str(), one.authority().as_deref(), one.name.as_str()), ("p1", Some("10.0.0.7:20880"), NAME));
        assert_eq!(one.payload.as_ref().unwrap().version, "1.0");
        let consumers = soon(registry(&other).typed_consumers::<BTreeMap<String, String>>(NAME)).await.unwrap();
        assert_eq!(consumers.instances().iter().next().unwrap().id, "c1");
        soon(consumer.deregister()).await.unwrap();
        soon(registration.deregister()).await.unwrap();
        assert!(other.children(PROVIDERS).await.map_or(true, |children| children.names.is_empty()));
    }

    async fn an_instance_is_found_by_its_id_and_by_its_node(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registration = soon(registry(&client).register(provider())).await.unwrap();
        let view = soon(registry(&client).typed_service::<Parameters>(NAME)).await.unwrap();
        for key in ["p1", FIRST] {
            let instances = view.instances();
            assert_eq!(instances.get(key).map(|one| one.port), Some(Some(20880)), "{key}");
            assert!(instances.version(key).is_some(), "{key}");
        }
        assert!(view.instances().get("p2").is_none());
        soon(registration.set_enabled(false)).await.unwrap();
        until(async || view.instances().get("p1").is_some_and(|one| !one.enabled)).await;
        soon(registration.deregister()).await.unwrap();
        until(async || view.instances().get("p1").is_none()).await;
    }

    async fn an_update_creates_a_node_before_it_deletes_the_old_one(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(registry(&client).register(provider())).await.unwrap();
        let view = soon(registry(&other).typed_service::<Parameters>(NAME)).await.unwrap();
        let mut changes = view.changes();
        assert!(matches!(soon(changes.next()).await, Some(Ok(ServiceChange::Added(_)))));
        soon(registration.update(version("2.0"))).await.unwrap();
        assert_eq!(other.exists(&format!("{PROVIDERS}/{FIRST}")).await.unwrap(), None);
        let mut reported = Vec::new();
        while !["removed 1.0", "added 2.0"].iter().all(|word| reported.contains(&word.to_string())) {
            let version = |instance: &Instance<Parameters>| instance.payload.clone().unwrap().version;
            match soon(changes.next()).await.unwrap().unwrap() {
                ServiceChange::Added(one) => reported.push(format!("added {}", version(&one))),
                ServiceChange::Removed(one) => reported.push(format!("removed {}", version(&one))),
                _ => {}
            }
        }
        assert_eq!(reported.len(), 2, "{reported:?}");
        soon(registration.set_enabled(false)).await.unwrap();
        soon(async { while !view.instances().is_empty() { changes.next().await.unwrap().unwrap(); } }).await;
        let path = registration.path();
        assert!(path.contains("enabled%3Dfalse"), "{path}");
        drop(registration);
        until_deleted(&other, &path).await;
    }

    async fn alternating_updates_during_an_outage_end_at_the_last_one(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let settings = || builder(&server, proxy.connect_string()).operation_timeout(Duration::from_millis(300));
        // The first requests to a fresh server are slow, and the client of this test waits only briefly.
        let first = soon(registry(&other).register(version("1"))).await.unwrap();
        soon(first.deregister()).await.unwrap();
        for kind in [ServiceType::Dynamic, ServiceType::Permanent] {
            let client = settings().connect().await.unwrap();
            let registration = soon(registry(&client).register(version("1").service_type(kind))).await.unwrap();
            let first = other.get(&registration.path()).await.unwrap().stat;
            for last in ["2", "1", "3"] {
                proxy.cut().await;
                for step in ["2", "1", "3", "1", last] {
                    let error = soon(registration.update(version(step).service_type(kind))).await.err();
                    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Timeout), "{kind:?} {step}");
                }
                proxy.heal().await.unwrap();
                until_announced(&registration).await;
                soon(async { while versions(&other).await != [last] {} }).await;
            }
            let last = other.get(&registration.path()).await.unwrap().stat;
            assert!(last.czxid > first.czxid);
            // An instance that is updated and then updated back is never removed.
            proxy.cut().await;
            for step in ["2", "3"] {
                assert!(soon(registration.update(version(step).service_type(kind))).await.is_err());
            }
            proxy.heal().await.unwrap();
            until_announced(&registration).await;
            assert_eq!(other.get(&registration.path()).await.unwrap().stat.czxid, last.czxid);
            soon(async { while versions(&other).await != ["3"] {} }).await;
            soon(registration.deregister()).await.unwrap();
            assert_eq!(versions(&other).await, [""; 0]);
        }
    }

    async fn an_update_that_fails_or_is_dropped_anywhere_leaves_no_second_node(backend: Backend) {
        let server = backend.start().await;
        let (proxy, other) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for kind in [ServiceType::Dynamic, ServiceType::Permanent] {
            let registration = soon(registry(&client).register(version("1").service_type(kind))).await.unwrap();
            for polls in 1..12 {
                let mut update = Box::pin(registration.update(version("2").service_type(kind)));
                for _ in 0..polls {
                    if futures_util::poll!(&mut update).is_ready() {
                        break;
                    }
                    docent_tests::pause().await;
                }
                drop(update);
                until_announced(&registration).await;
                soon(async { while versions(&other).await != ["2"] {} }).await;
                soon(registration.update(version("1").service_type(kind))).await.unwrap();
                assert_eq!(versions(&other).await, ["1"], "{kind:?} {polls}");
            }
            for op in [OpCode::GetData, OpCode::Create2, OpCode::Exists, OpCode::Delete] {
                for rule in [Rule::on(op).reset_before(), Rule::on(op).reset_after()] {
                    proxy.add(rule);
                    soon(registration.update(version("2").service_type(kind))).await.unwrap();
                    assert_eq!(versions(&other).await, ["2"], "{kind:?} {op:?}");
                    soon(registration.update(version("1").service_type(kind))).await.unwrap();
                    assert_eq!(versions(&other).await, ["1"], "{kind:?} {op:?}");
                }
            }
            soon(registration.deregister()).await.unwrap();
            assert_eq!(versions(&other).await, [""; 0]);
        }
    }

    async fn concurrent_updates_end_at_the_last_one(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for kind in [ServiceType::Dynamic, ServiceType::Permanent] {
            let registration = soon(registry(&client).register(version("1").service_type(kind))).await.unwrap();
            for steps in [["2", "1", "2"], ["1", "2", "1"], ["2", "3", "1"]] {
                let updates = steps.map(|step| registration.update(version(step).service_type(kind)));
                for done in soon(join_all(updates)).await {
                    done.unwrap();
                }
                // A node that another update still waited for is deleted in the background.
                soon(async { while versions(&other).await != [steps[2]] {} }).await;
            }
            soon(registration.deregister()).await.unwrap();
            assert_eq!(versions(&other).await, [""; 0]);
        }
    }

    async fn dubbos_instances_are_found_and_unreadable_ones_affect_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let dubbo = "dubbo%3A%2F%2F10.0.0.8%3A20880%2Fcom.shop.Orders%3Fanyhost%3Dtrue%26application%3Dshop%26version%3D1.0%26weight%3D200";
        for name in [dubbo, "not-a-url", "%zz", "dubbo%3A%2F%2Fh%3A99999%2Fx"] {
            other.create(&format!("{PROVIDERS}/{name}"), "10.0.0.8", CreateMode::Ephemeral).await.unwrap();
        }
        let view = soon(registry(&client).typed_service::<Parameters>(NAME)).await.unwrap();
        let picked = view.pick().unwrap();
        assert_eq!((picked.authority().as_deref(), picked.weight), (Some("10.0.0.8:20880"), Some(200)));
        assert_eq!((view.instances().len(), view.instances().unreadable().len()), (1, 3));
        let error = soon(registry(&client).register(provider().payload(vec![1]))).await.unwrap_err();
        assert!(error.to_string().contains("must be an object of texts"), "{error}");
        let error = soon(registry(&client).register(Instance::named(NAME))).await.unwrap_err();
        assert!(error.to_string().contains("must have an address"), "{error}");
    }
}
