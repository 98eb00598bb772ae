//! Folders of registries and memberships, which other libraries watch.

use crate::builder;
use docent::client::ParentKind;
use docent::discovery::{RegistryLayout, ServiceType};
use docent::{Client, Instance, Membership, Registry};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon};

/// Joins a registry in each layout and a group below `root`, and leaves them.
async fn come_and_go(client: &Client, root: &str, kind: Option<ParentKind>) {
    for (base, layout) in [("services", RegistryLayout::Curator), ("dubbo", RegistryLayout::Dubbo)] {
        let builder = Registry::builder(client, &format!("{root}/{base}")).layout(layout);
        let registry = if let Some(kind) = kind { builder.parents(kind) } else { builder }.build().unwrap();
        for (name, lifetime) in [("orders", ServiceType::Dynamic), ("prices", ServiceType::Static)] {
            let instance = Instance::new(name, "10.0.0.7", 80).service_type(lifetime);
            let registration = soon(registry.register(instance)).await.unwrap();
            soon(registration.deregister()).await.unwrap();
        }
    }
    let builder = Membership::builder(client, &format!("{root}/cluster"));
    let group = if let Some(kind) = kind { builder.parents(kind) } else { builder }.build().unwrap();
    soon(soon(group.join("a", "")).await.unwrap().leave()).await.unwrap();
}

/// Waits until the servers have deleted the folders below `root`.
async fn until_reaped(client: &Client, root: &str) {
    soon(async { while client.exists(root).await.unwrap().is_some() {} }).await;
}

both_backends! {
    async fn folders_that_other_libraries_watch_stay_by_default(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        come_and_go(&client, "/lasting", None).await;
        come_and_go(&client, "/fleeting", Some(ParentKind::Container)).await;
        until_reaped(&client, "/fleeting").await;
        for folder in ["services/orders", "services/prices", "dubbo/orders/providers", "cluster"] {
            let path = format!("/lasting/{folder}");
            assert!(client.exists(&path).await.unwrap().is_some(), "{path}");
        }
    }

    async fn folders_are_containers_on_request_whatever_the_client_is_set_to(backend: Backend) {
        let server = backend.start().await;
        let settings = builder(&server, server.connect_string()).parents(ParentKind::Persistent);
        let client = settings.connect().await.unwrap();
        come_and_go(&client, "/fleeting", Some(ParentKind::Container)).await;
        until_reaped(&client, "/fleeting").await;
    }
}
