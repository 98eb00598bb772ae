//! Live views of a service.

use crate::connect;
use crate::scene::{
    BASE, ORDERS, behind_proxy, ids, next, orders, registry, until_deleted, until_ids, view, word,
};
use docent::discovery::{ServiceChange, ServiceType};
use docent::{CreateMode, Instance, Registry};
use docent_battery::{Backend, both_backends};
use docent_tests::{SHORT_SESSION, own_nodes, soon, until};
use futures_util::StreamExt;
use std::time::Duration;

both_backends! {
    async fn a_view_shows_available_instances_and_reports_changes(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let view = view(&other).await;
        assert!(view.instances().is_empty() && !view.is_stale() && view.stale_for().is_none());
        let mut changes = view.changes();
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        assert_eq!(next(&mut changes).await, "added 1");
        let two = soon(registry(&client).register(orders("2"))).await.unwrap();
        assert_eq!(next(&mut changes).await, "added 2");
        soon(one.update(orders("1").payload("new".to_owned()))).await.unwrap();
        assert_eq!(next(&mut changes).await, "updated 1");
        assert_eq!(view.instances().get("1").unwrap().payload.as_deref(), Some("new"));
        soon(one.set_enabled(false)).await.unwrap();
        assert_eq!(next(&mut changes).await, "removed 1");
        assert_eq!((view.instances().len(), view.instances().all().len()), (1, 2));
        soon(one.set_enabled(true)).await.unwrap();
        assert_eq!(next(&mut changes).await, "added 1");
        // A snapshot does not change.
        let before = view.instances();
        soon(two.deregister()).await.unwrap();
        assert_eq!(next(&mut changes).await, "removed 2");
        assert_eq!((before.len(), view.instances().len()), (2, 1));
        // A later subscriber receives the current state.
        let mut late = view.changes();
        assert_eq!(word(soon(late.next()).await.as_ref()), "added 1");
        assert_eq!(word(soon(late.next()).await.as_ref()), "current");
        soon(other.close()).await;
        assert_eq!(next(&mut changes).await, "end");
        assert_eq!(ids(&view), ["1"], "the last known instances");
        assert!(view.is_stale());
    }

    async fn a_view_keeps_serving_during_an_outage_and_reports_its_age(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SHORT_SESSION).await;
        let one = soon(registry(&other).register(orders("1"))).await.unwrap();
        let two = soon(registry(&other).register(orders("2"))).await.unwrap();
        let view = view(&client).await;
        let mut changes = view.changes();
        for expected in ["added 1", "added 2", "current"] {
            assert_eq!(word(soon(changes.next()).await.as_ref()), expected);
        }
        let session = client.session_id().unwrap();
        proxy.cut().await;
        assert_eq!(word(soon(changes.next()).await.as_ref()), "stale");
        soon(two.deregister()).await.unwrap();
        let _three = soon(registry(&other).register(orders("3"))).await.unwrap();
        soon(one.update(orders("1").payload("new".to_owned()))).await.unwrap();
        let first = view.stale_for().unwrap();
        server.expire(session).await.unwrap();
        assert!((0..10).all(|_| view.pick().is_ok()));
        assert_eq!(ids(&view), ["1", "2"]);
        soon(async { while view.stale_for().unwrap() <= first { docent_tests::pause().await; } }).await;
        proxy.heal().await.unwrap();
        let mut words = Vec::new();
        while words.last().map(String::as_str) != Some("current") {
            words.push(word(soon(changes.next()).await.as_ref()));
        }
        words.pop();
        words.sort();
        assert_eq!(words, ["added 3", "removed 2", "updated 1"], "each once");
        assert!(!view.is_stale());
    }

    async fn a_loss_that_the_instances_client_declared_removes_nothing_from_a_view(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SHORT_SESSION).await;
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        // Waits until the session has its witness. A later session needs the witness to replace the nodes.
        until(async || own_nodes(&other).await.len() == 2).await;
        let view = view(&other).await;
        let mut changes = view.changes();
        assert_eq!(next(&mut changes).await, "added 1");
        let (old, version) = (client.session_id().unwrap(), view.instances().version("1").unwrap());
        proxy.cut().await;
        let _alive = soon(server.front().sessions().keep_alive(old, server.address())).await.unwrap();
        soon(client.state().reached(docent::ConnectionState::Lost)).await;
        proxy.heal().await.unwrap();
        crate::scene::until_owned(&client, &other, "/services/orders/1").await;
        soon(async { while view.instances().version("1").unwrap() <= version { docent_tests::pause().await; } }).await;
        assert_ne!(client.session_id(), Some(old));
        // The next change is the new instance: nothing was removed or updated meanwhile.
        let _two = soon(registry(&other).register(orders("2"))).await.unwrap();
        assert_eq!(next(&mut changes).await, "added 2");
    }

    async fn a_loss_that_the_views_client_declared_removes_nothing_from_it(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let _one = soon(registry(&other).register(orders("1"))).await.unwrap();
        let (client, proxy) = behind_proxy(&server, SHORT_SESSION).await;
        let view = view(&client).await;
        let mut changes = view.changes();
        assert_eq!(next(&mut changes).await, "added 1");
        proxy.blackhole();
        soon(client.state().reached(docent::ConnectionState::Lost)).await;
        assert_eq!(ids(&view), ["1"]);
        proxy.heal().await.unwrap();
        let _two = soon(registry(&other).register(orders("2"))).await.unwrap();
        assert_eq!(next(&mut changes).await, "added 2");
    }

    async fn an_instance_that_returns_within_the_grace_is_never_removed(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let open = |grace| registry(&other).service_builder::<String>("orders").removal_grace(grace).open();
        // One grace outlasts the test, and the other ends almost immediately.
        let (patient, hasty) = (soon(open(Duration::from_secs(3600))).await.unwrap(), soon(open(Duration::from_millis(50))).await.unwrap());
        let mut changes = patient.changes();
        for expected in ["added 1", "added 2"] {
            assert_eq!(next(&mut changes).await, expected);
        }
        soon(two.deregister()).await.unwrap();
        until_ids(&hasty, &["1"]).await;
        assert_eq!(ids(&patient), ["1", "2"]);
        server.expire(client.session_id().unwrap()).await.unwrap();
        crate::scene::until_owned(&client, &other, "/services/orders/1").await;
        let again = soon(registry(&client).register(orders("2").payload("again".to_owned()))).await.unwrap();
        // The unchanged instance that returned within the grace is not reported.
        assert_eq!(next(&mut changes).await, "updated 2");
        // A disabled instance is removed immediately.
        soon(one.set_enabled(false)).await.unwrap();
        assert_eq!(next(&mut changes).await, "removed 1");
        drop(again);
        until_deleted(&other, "/services/orders/2").await;
        assert_eq!(ids(&patient), ["2"]);
    }

    async fn a_filter_shows_only_what_it_accepts(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let in_a = |id: &str| orders(id).payload("a".to_owned());
        let view = registry(&other).service_builder::<String>("orders")
            .filter(|instance| instance.payload.as_deref() == Some("a")).open();
        let view = soon(view).await.unwrap();
        let mut changes = view.changes();
        let one = soon(registry(&client).register(in_a("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let _three = soon(registry(&client).register(in_a("3"))).await.unwrap();
        for expected in ["added 1", "added 3"] {
            assert_eq!(next(&mut changes).await, expected);
        }
        soon(one.update(orders("1"))).await.unwrap();
        assert_eq!(next(&mut changes).await, "removed 1");
        assert_eq!((ids(&view), view.instances().all().len()), (vec!["3".to_owned()], 3));
        assert_eq!(view.pick_where(|instance| instance.id == "3").unwrap().id, "3");
        let error = view.pick_where(|instance| instance.id == "1").unwrap_err();
        assert_eq!(error.to_string(), "pick: service \"orders\" has no available instance");
    }

    async fn a_service_whose_node_is_deleted_or_re_created_is_still_followed(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let view = view(&other).await;
        for id in ["1", "2", "3"] {
            let one = soon(registry(&client).register(orders(id))).await.unwrap();
            until_ids(&view, &[id]).await;
            soon(one.deregister()).await.unwrap();
            until_ids(&view, &[]).await;
            // The servers delete empty containers too, but later.
            let _ = other.delete(ORDERS, None).await;
            until_deleted(&other, ORDERS).await;
        }
    }

    async fn an_unlimited_grace_keeps_every_instance(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let builder = registry(&other).service_builder::<String>("orders").removal_grace(Duration::MAX);
        let view = soon(builder.open()).await.unwrap();
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        until_ids(&view, &["1"]).await;
        soon(one.deregister()).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        until_ids(&view, &["1", "2"]).await;
    }

    async fn nodes_below_an_instance_are_no_instances(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let permanent = orders("1").service_type(ServiceType::Permanent);
        let one = soon(registry(&client).register(permanent)).await.unwrap();
        other.create("/services/orders/1/below", "", CreateMode::Persistent).await.unwrap();
        let view = view(&other).await;
        assert_eq!((ids(&view), view.instances().unreadable().len()), (vec!["1".to_owned()], 0));
        other.delete("/services/orders/1/below", None).await.unwrap();
        soon(one.deregister()).await.unwrap();
    }

    async fn a_dropped_view_leaves_no_watch_and_no_task(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        for _ in 0..50 {
            let view = view(&other).await;
            let mut changes = view.changes();
            drop(view);
            // A stream keeps its view alive.
            assert_eq!(next(&mut changes).await, "added 1");
        }
        soon(async { while tasks() > before { docent_tests::pause().await; } }).await;
        if let Some(embedded) = server.as_embedded() {
            // The registration's watch is the only remaining watch.
            soon(async { while embedded.watch_count() != 1 { other.sync("/").await.unwrap(); } }).await;
        }
    }

    async fn a_slow_reader_of_changes_receives_the_final_state(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let view = view(&other).await;
        let mut changes = view.changes();
        assert_eq!(next(&mut changes).await, "added 1");
        let mut watching = view.changes();
        for n in 0..20 {
            soon(one.update(orders("1").payload(n.to_string()))).await.unwrap();
        }
        soon(async {
            while view.instances().get("1").unwrap().payload.as_deref() != Some("19") {
                watching.next().await.unwrap().unwrap();
            }
        }).await;
        let updated = soon(async {
            loop {
                match changes.next().await {
                    Some(Ok(ServiceChange::Updated(instance))) => return instance,
                    Some(_) => {}
                    None => panic!("the client is open"),
                }
            }
        })
        .await;
        assert_eq!(updated.payload.as_deref(), Some("19"));
    }

    async fn an_unused_payload_may_be_anything(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(Instance::new("orders", "10.0.0.8", 80).id("2"))).await.unwrap();
        let unseen = soon(registry(&other).service("orders")).await.unwrap();
        assert_eq!(unseen.instances().len(), 2);
        let texts = view(&other).await;
        assert_eq!(texts.instances().get("2").unwrap().payload, None, "an instance without a payload fits every type");
        let numbers = soon(registry(&other).typed_service::<u64>("orders")).await.unwrap();
        assert_eq!((numbers.instances().len(), numbers.instances().unreadable().len()), (1, 1));
    }

    async fn views_of_services_with_a_name_like_a_path_are_refused(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for name in ["", "a/b", "..", "a b"] {
            let error = soon(registry(&client).service(name)).await.unwrap_err();
            assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        }
        assert!(Registry::new(&client, BASE).unwrap().names().await.unwrap().is_empty());
    }
}
