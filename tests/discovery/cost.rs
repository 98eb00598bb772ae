//! Requests and round trips of instances and their viewers.

use crate::scene::{ORDERS, next, orders, registry, until_ids, view};
use docent::discovery::Registration;
use docent::{Client, Instance};
use docent_battery::{Backend, FrameKind, Proxy, TestServer, both_backends, round_trips};
use docent_proto::OpCode;
use docent_tests::{builder, connect, own_nodes, soon, until};

/// Returns the requests after a position of the trace, without pings, and their round trips.
fn since(proxy: &Proxy, before: usize) -> (Vec<OpCode>, usize) {
    let trace = &proxy.trace()[before..];
    let requests = trace.iter().filter(|frame| frame.kind == FrameKind::Request);
    let requests = requests.filter_map(|frame| frame.op).filter(|op| *op != OpCode::Ping).collect();
    (requests, round_trips(trace))
}

/// Returns a client that has registered the instance `a` behind its own proxy, and has no request in flight.
async fn registered(server: &TestServer, other: &Client) -> (Proxy, Client, Registration) {
    let proxy = server.proxy().await;
    let client = builder(server, proxy.connect_string()).connect().await.unwrap();
    let registration = soon(registry(&client).register(orders("a"))).await.unwrap();
    // Waits for a marker of exact writes and for the session's witness, which is created in the background.
    until(async || own_nodes(other).await.len() == 2).await;
    soon(client.sync("/")).await.unwrap();
    (proxy, client, registration)
}

both_backends! {
    async fn an_update_is_a_write_and_a_read_in_one_trip_and_a_viewer_reads_once(backend: Backend) {
        let server = backend.start().await;
        let (other, eyes) = (connect(&server).await, server.proxy().await);
        let (proxy, _client, registration) = registered(&server, &other).await;
        let viewer = builder(&server, eyes.connect_string()).connect().await.unwrap();
        let view = view(&viewer).await;
        let mut changes = view.changes();
        assert_eq!(next(&mut changes).await, "added a");
        soon(viewer.sync("/")).await.unwrap();
        let (writes, reads) = (proxy.trace().len(), eyes.trace().len());
        for port in 1..=10 {
            let mut instance = orders("a");
            instance.port = Some(port);
            soon(registration.update(instance)).await.unwrap();
            assert_eq!(next(&mut changes).await, "updated a");
        }
        let update = [OpCode::Multi, OpCode::GetData];
        assert_eq!(since(&proxy, writes), (update.repeat(10), 10), "requests of the changing instance");
        assert_eq!(since(&eyes, reads), (vec![OpCode::GetData; 10], 10), "requests of the viewer");
    }

    async fn a_registration_is_a_write_and_a_read_in_one_trip(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (proxy, client, first) = registered(&server, &other).await;
        let mut registrations = vec![first];
        for id in ["b", "c"] {
            let before = proxy.trace().len();
            let own = Instance::new("orders", "10.0.0.7", 8080).id(id);
            registrations.push(soon(registry(&client).register(own)).await.unwrap());
            assert_eq!(since(&proxy, before), (vec![OpCode::Multi, OpCode::GetData], 1), "{id}");
        }
        // A payload is compared with those of the other instances first.
        let before = proxy.trace().len();
        let registry = registry(&client);
        registrations.push(soon(registry.register(orders("d"))).await.unwrap());
        let (requests, trips) = since(&proxy, before);
        assert_eq!(requests[1..], [OpCode::MultiRead, OpCode::Multi, OpCode::GetData], "{requests:?}");
        assert_eq!(trips, 3);
        // That is not repeated while the registry announces such a payload.
        let before = proxy.trace().len();
        registrations.push(soon(registry.register(orders("e"))).await.unwrap());
        assert_eq!(since(&proxy, before), (vec![OpCode::Multi, OpCode::GetData], 1));
    }

    async fn disabling_is_a_write_and_a_read_in_one_trip_and_repeating_it_is_free(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (proxy, _client, registration) = registered(&server, &other).await;
        for enabled in [false, true] {
            let before = proxy.trace().len();
            soon(registration.set_enabled(enabled)).await.unwrap();
            soon(registration.set_enabled(enabled)).await.unwrap();
            assert_eq!(since(&proxy, before), (vec![OpCode::Multi, OpCode::GetData], 1), "{enabled}");
        }
    }

    async fn an_instance_that_was_updated_is_deregistered_by_one_request(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (proxy, client, registration) = registered(&server, &other).await;
        soon(registration.set_enabled(false)).await.unwrap();
        let before = proxy.trace().len();
        soon(registration.deregister()).await.unwrap();
        // A later request shows that no further request follows the delete.
        assert!(soon(client.exists(&format!("{ORDERS}/a"))).await.unwrap().is_none());
        assert_eq!(since(&proxy, before), (vec![OpCode::Multi, OpCode::Exists], 2));
    }

    async fn an_instance_that_never_changed_is_read_before_it_is_deregistered(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (proxy, client, registration) = registered(&server, &other).await;
        let before = proxy.trace().len();
        soon(registration.deregister()).await.unwrap();
        assert!(soon(client.exists(&format!("{ORDERS}/a"))).await.unwrap().is_none());
        let requests = vec![OpCode::Sync, OpCode::Exists, OpCode::Multi, OpCode::Exists];
        assert_eq!(since(&proxy, before), (requests, 3));
    }

    async fn a_join_and_a_leave_cost_a_viewer_a_listing_and_a_read_each(backend: Backend) {
        let server = backend.start().await;
        let (other, eyes) = (connect(&server).await, server.proxy().await);
        let registered = soon(registry(&other).register(orders("a"))).await.unwrap();
        let viewer = builder(&server, eyes.connect_string()).connect().await.unwrap();
        let view = view(&viewer).await;
        until_ids(&view, &["a"]).await;
        soon(viewer.sync("/")).await.unwrap();
        let before = eyes.trace().len();
        let joined = soon(registry(&other).register(orders("b"))).await.unwrap();
        until_ids(&view, &["a", "b"]).await;
        soon(viewer.sync("/")).await.unwrap();
        assert_eq!(since(&eyes, before), (vec![OpCode::GetChildren2, OpCode::GetData, OpCode::Sync], 3));
        let before = eyes.trace().len();
        soon(joined.deregister()).await.unwrap();
        until_ids(&view, &["a"]).await;
        soon(viewer.sync("/")).await.unwrap();
        let mut requests = since(&eyes, before).0;
        requests.sort_by_key(|op| format!("{op:?}"));
        assert_eq!(requests, [OpCode::GetChildren2, OpCode::GetData, OpCode::Sync]);
        drop(registered);
    }
}
