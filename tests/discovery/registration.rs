//! Instances that stay registered, and how a registration ends.

use crate::scene::{ORDERS, behind_proxy, orders, registry, until_deleted, until_ids, until_owned, view};
use docent::discovery::{RegistrationStatus, ServiceType};
use docent::node::{Acl, Permissions};
use docent::{ConnectionState, CreateMode, ErrorKind, Instance, Registry, Released};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{SESSION, SHORT_SESSION, builder, connect, soon, until};
use std::time::Duration;

const ONE: &str = "/services/orders/1";

both_backends! {
    async fn an_instance_is_registered_as_curator_would_until_it_is_deregistered(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mut instance = orders("1");
        instance.registered_at_ms = 1_234_567_890_123;
        let registration = soon(registry(&client).register(instance)).await.unwrap();
        assert_eq!((registration.path().as_str(), registration.id().as_str()), (ONE, "1"));
        assert!(matches!(registration.status(), RegistrationStatus::Announced));
        let json = r#"{"name":"orders","id":"1","address":"10.0.0.7","port":8080,"sslPort":null,"payload":"1","registrationTimeUTC":1234567890123,"serviceType":"DYNAMIC","uriSpec":null}"#;
        let node = other.get(ONE).await.unwrap();
        assert_eq!((&node.data[..], node.stat.owner), (json.as_bytes(), client.session_id()));
        soon(registration.deregister()).await.unwrap();
        assert_eq!(other.exists(ONE).await.unwrap(), None);
    }

    async fn a_dropped_registration_is_deregistered_in_the_background(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        drop(registration);
        // The same id is registered again immediately.
        let again = soon(registry(&client).register(orders("1"))).await.unwrap();
        until_owned(&client, &other, ONE).await;
        drop(again);
        until_deleted(&other, ONE).await;
        soon(registry(&client).register(orders("1"))).await.unwrap().deregister().await.unwrap();
    }

    async fn an_update_is_stored_when_it_returns(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        let created = other.exists(ONE).await.unwrap().unwrap().czxid;
        soon(registration.update(orders("1").payload("new").weight(5))).await.unwrap();
        let text = until_owned(&client, &other, ONE).await;
        assert!(text.contains(r#""payload":"new""#) && text.ends_with(r#""weight":5}"#), "{text}");
        soon(registration.set_enabled(false)).await.unwrap();
        let text = until_owned(&client, &other, ONE).await;
        assert!(text.contains(r#""payload":"new""#) && text.contains(r#""enabled":false"#), "{text}");
        soon(registration.set_enabled(true)).await.unwrap();
        assert!(!until_owned(&client, &other, ONE).await.contains("enabled"));
        assert_eq!(other.exists(ONE).await.unwrap().unwrap().czxid, created, "the node was never deleted");
        for wrong in [orders("2"), orders("1").service_type(ServiceType::Static)] {
            let error = soon(registration.update(wrong)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        let mut wrong = orders("1");
        wrong.name = "payments".to_owned();
        assert!(soon(registration.update(wrong)).await.unwrap_err().to_string().contains("must keep its name"));
    }

    async fn an_instance_that_an_operator_has_disabled_is_not_drained(backend: Backend) {
        const LONG: Duration = Duration::from_secs(3_600);
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registry = Registry::builder(&client, "/services").drain(LONG).build().unwrap();
        let registration = soon(registry.register(orders("1"))).await.unwrap();
        other.set(ONE, r#"{"enabled":false,"id":"1","name":"orders"}"#, None).await.unwrap();
        until(async || registration.is_disabled_by_operator()).await;
        until_owned(&client, &other, ONE).await;
        soon(client.shutdown(LONG)).await;
        assert!(other.exists(ONE).await.unwrap().is_none());
    }

    async fn an_operator_disables_and_enables_an_instance_by_writing_its_node(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        let view = view(&other).await;
        let write = async |data: &str| {
            other.set(ONE, data.to_owned(), None).await.unwrap();
        };
        let until_enabled = async |wanted: bool| {
            until(async || view.instances().get("1").is_some_and(|one| one.enabled == wanted)).await;
        };
        write(r#"{"enabled":false,"id":"1","name":"orders","payload":"theirs"}"#).await;
        until(async || registration.is_disabled_by_operator()).await;
        until_enabled(false).await;
        // The service cannot undo that, and a new session does not. All other data is the service's own.
        soon(registration.update(orders("1").payload("new"))).await.unwrap();
        soon(registration.set_enabled(false)).await.unwrap();
        soon(registration.set_enabled(true)).await.unwrap();
        let session = client.session_id();
        server.expire(session.unwrap()).await.unwrap();
        until(async || client.session_id() != session).await;
        let text = until_owned(&client, &other, ONE).await;
        assert!(text.contains(r#""payload":"new""#) && text.contains(r#""enabled":false"#), "{text}");
        assert!(registration.is_disabled_by_operator() && view.pick().is_err());
        write(r#"{"enabled":true,"id":"1","name":"orders"}"#).await;
        until_enabled(true).await;
        until(async || !registration.is_disabled_by_operator()).await;
        // An operator cannot enable what the service has disabled, nor change anything else.
        soon(registration.set_enabled(false)).await.unwrap();
        for data in [r#"{"enabled":true,"id":"1","name":"orders"}"#, r#"{"enabled":true,"id":"2","name":"orders"}"#, ""] {
            write(data).await;
            until(async || other.get(ONE).await.unwrap().data != data).await;
            assert!(until_owned(&client, &other, ONE).await.contains(r#""enabled":false"#));
        }
        soon(registration.set_enabled(true)).await.unwrap();
        assert!(!until_owned(&client, &other, ONE).await.contains("enabled"));
    }

    async fn a_draining_instance_is_no_longer_picked_and_then_deleted(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = view(&other).await;
        assert_eq!(crate::scene::ids(&view), ["1", "2"]);
        // The test determines how long the instance drains.
        let draining = tokio::spawn(one.drain(Duration::from_secs(3600)));
        until_ids(&view, &["2"]).await;
        assert!(view.instances().get("1").is_some_and(|one| !one.enabled));
        assert!((0..10).all(|_| view.pick().unwrap().id == "2"));
        // When draining is cancelled, the instance is deregistered immediately.
        draining.abort();
        until_deleted(&other, ONE).await;
        let two = soon(registry(&client).register(orders("3"))).await.unwrap();
        soon(two.drain(Duration::from_millis(1))).await.unwrap();
        assert_eq!(other.exists("/services/orders/3").await.unwrap(), None);
    }

    async fn an_instance_whose_session_expired_is_registered_again_with_its_latest_data(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SHORT_SESSION).await;
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        let more: Vec<_> = futures_util::future::join_all((2..10).map(|id| {
            let registry = registry(&client);
            async move { soon(registry.register(orders(&id.to_string()))).await.unwrap() }
        })).await;
        let before = client.session_id().unwrap();
        proxy.cut().await;
        // This update is submitted while no server is reachable.
        let update = registration.update(orders("1").payload("last"));
        tokio::select! {
            biased;
            update = update => panic!("{update:?}"),
            () = tokio::task::yield_now() => {}
        }
        server.expire(before).await.unwrap();
        until_deleted(&other, ONE).await;
        proxy.heal().await.unwrap();
        assert!(until_owned(&client, &other, ONE).await.contains("last"));
        soon(registration.announced()).await.unwrap();
        for registration in &more {
            until_owned(&client, &other, &registration.path()).await;
        }
        assert_ne!(client.session_id(), Some(before));
    }

    async fn an_instance_whose_node_was_deleted_by_hand_is_registered_again(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        for _ in 0..5 {
            other.delete(ONE, None).await.unwrap();
            until_owned(&client, &other, ONE).await;
        }
        other.set(ONE, "unreadable", None).await.unwrap();
        soon(async { while other.get(ONE).await.unwrap().data == "unreadable" {} }).await;
        soon(registration.deregister()).await.unwrap();
        assert_eq!(other.exists(ONE).await.unwrap(), None);
    }

    async fn a_server_restart_leaves_every_instance_where_it_is(backend: Backend) {
        let server = backend.start_own().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let view = view(&other).await;
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        until_ids(&view, &["1", "2"]).await;
        let mut changes = view.changes();
        for expected in ["added 1", "added 2"] {
            assert_eq!(crate::scene::next(&mut changes).await, expected);
        }
        let created = other.exists(ONE).await.unwrap().unwrap().czxid;
        server.stop().await;
        server.start_again().await;
        // The first change afterwards is the new update.
        soon(one.update(orders("1").payload("new"))).await.unwrap();
        assert_eq!(crate::scene::next(&mut changes).await, "updated 1");
        assert_eq!(other.exists(ONE).await.unwrap().unwrap().czxid, created);
    }

    async fn an_instance_announced_before_a_server_is_up_is_registered_once_it_is(backend: Backend) {
        let server = backend.start_own().await;
        server.stop().await;
        let client = builder(&server, server.connect_string())
            .operation_timeout(Duration::from_millis(300)).build().unwrap();
        let error = soon(registry(&client).register(orders("2"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        let registration = registry(&client).announce(orders("1")).unwrap();
        let view = registry(&client).service_builder::<String>("orders").start().unwrap();
        assert_eq!(soon(registration.announced()).await.unwrap_err().kind(), ErrorKind::Timeout);
        assert!(matches!(registration.status(), RegistrationStatus::Pending));
        assert_eq!(soon(view.ready()).await.unwrap_err().kind(), ErrorKind::Timeout);
        assert!(view.is_stale() && view.pick().is_err());
        server.start_again().await;
        soon(async { while registration.announced().await.is_err() {} }).await;
        until_ids(&view, &["1"]).await;
        soon(registration.deregister()).await.unwrap();
    }

    async fn a_deregistration_or_drain_in_an_outage_is_pending_and_done_later(backend: Backend) {
        let server = backend.start_own().await;
        let other = connect(&server).await;
        // The first requests to a fresh server are slow, and the client of this test waits only briefly.
        let first = soon(registry(&other).register(orders("0"))).await.unwrap();
        soon(first.deregister()).await.unwrap();
        let client = builder(&server, server.connect_string())
            .operation_timeout(Duration::from_millis(300)).connect().await.unwrap();
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let permanent = orders("3").service_type(ServiceType::Permanent);
        let permanent = soon(registry(&client).register(permanent)).await.unwrap();
        let paths = [one.path(), two.path()];
        server.stop().await;
        assert_eq!(soon(one.deregister()).await.unwrap(), Released::Pending);
        assert_eq!(soon(two.drain(Duration::from_secs(1))).await.unwrap(), Released::Pending);
        // Nothing deletes a permanent instance in the background.
        assert_eq!(soon(permanent.deregister()).await.unwrap_err().kind(), ErrorKind::Timeout);
        server.start_again().await;
        for path in &paths {
            until_deleted(&other, path).await;
        }
    }

    async fn a_restarted_process_with_the_same_id_waits_for_its_predecessor_and_takes_over(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (before, proxy) = behind_proxy(&server, SESSION).await;
        let predecessor = soon(registry(&before).register(orders("1"))).await.unwrap();
        let old = before.session_id().unwrap();
        // The process is killed, but its session lives on for a while.
        proxy.cut().await;
        // The wait is longer than the operation timeout.
        let impatient = client.with_operation_timeout(Duration::from_secs(1));
        let impatient_registry = registry(&impatient);
        let mut successor = Box::pin(impatient_registry.register(orders("1").payload("successor")));
        tokio::select! {
            done = &mut successor => panic!("{done:?}"),
            () = tokio::time::sleep(Duration::from_millis(1300)) => {}
        }
        assert_eq!(other.get(ONE).await.unwrap().stat.owner, Some(old), "the predecessor's node is unchanged");
        server.expire(old).await.unwrap();
        let registration = soon(successor).await.unwrap();
        assert!(until_owned(&client, &other, ONE).await.contains("successor"));
        // The old process returns, waits, and reports that its id is occupied.
        proxy.heal().await.unwrap();
        soon(async {
            while !matches!(predecessor.status(), RegistrationStatus::Occupied { session_id } if Some(session_id) == client.session_id()) {
                docent_tests::pause().await;
            }
        }).await;
        soon(predecessor.deregister()).await.unwrap();
        assert!(until_owned(&client, &other, ONE).await.contains("successor"), "the old process deregisters only its own node");
        drop(registration);
        until_deleted(&other, ONE).await;
    }

    async fn registering_an_id_that_stays_in_use_fails_and_names_the_owner(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        other.create(ONE, "theirs", CreateMode::Ephemeral).await.unwrap();
        let (client, _proxy) = behind_proxy(&server, SHORT_SESSION).await;
        let error = soon(registry(&client).register(orders("1"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NodeExists);
        assert!(error.to_string().contains(&format!("{:#x}", other.session_id().unwrap())), "{error}");
        let _own = soon(registry(&client).register(orders("2"))).await.unwrap();
        let error = soon(registry(&client).register(orders("2"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyRegistered);
        assert_eq!(other.get(ONE).await.unwrap().data, "theirs");
    }

    async fn a_registration_that_never_succeeded_leaves_nothing(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        let held = proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with("/1")).hold());
        let registering = tokio::spawn({
            let registry = registry(&client);
            async move { registry.register(orders("1")).await.map(drop) }
        });
        soon(held.fired()).await;
        registering.abort();
        proxy.heal().await.unwrap();
        // The deregistration overtakes a slow registration, so the next registration is the only one.
        let two = soon(registry(&client).register(orders("2"))).await.unwrap();
        soon(async { while other.children(ORDERS).await.unwrap().names != ["2"] {} }).await;
        soon(two.deregister()).await.unwrap();
        soon(registry(&client).register(orders("1"))).await.unwrap().deregister().await.unwrap();
    }

    async fn a_closed_client_deregisters_its_instances_and_registers_no_others(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registry = registry(&client);
        let registration = soon(registry.register(orders("1"))).await.unwrap();
        soon(client.close()).await;
        assert_eq!(other.exists(ONE).await.unwrap(), None, "the node is deleted before close returns");
        assert_eq!(client.state().current().state, ConnectionState::Closed);
        assert_eq!(soon(registration.set_enabled(false)).await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(registration.last_error().map(|error| error.kind()), Some(ErrorKind::Closed));
        let _ = soon(registration.deregister()).await;
        assert_eq!(soon(registry.register(orders("2"))).await.unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(registry.announce(orders("2")).unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(soon(registry.service("orders")).await.unwrap_err().kind(), ErrorKind::Closed);
    }

    async fn registering_without_permission_fails_and_is_not_retried_forever(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        let read_only = Acl::new(Permissions::READ | Permissions::ADMIN, "world", "anyone");
        other.create(ORDERS, "", CreateMode::Persistent).await.unwrap();
        other.set_acl(ORDERS, [read_only], None).await.unwrap();
        let error = soon(registry(&client).register(orders("1"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoAuth);
        let registration = registry(&client).announce(orders("2")).unwrap();
        soon(async { while registration.last_error().is_none() { docent_tests::pause().await; } }).await;
        assert_eq!(registration.last_error().unwrap().kind(), ErrorKind::NoAuth);
        let creates = || proxy.trace().iter().filter(|frame| frame.is_reply(OpCode::Create2)).count();
        let before = creates();
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(creates() - before <= 5, "{} attempts in half a second", creates() - before);
        // Permissions of a client may be granted later.
        other.set_acl(ORDERS, [Acl::open_unsafe()], None).await.unwrap();
        // A new instance is registered immediately, and earlier errors are discarded.
        soon(registration.update(orders("2").payload("new".to_owned()))).await.unwrap();
        assert!(registration.last_error().is_none());
    }

    async fn changes_of_the_registration_status_are_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mut one = soon(registry(&client).register(orders("1"))).await.unwrap();
        while !matches!(one.status(), RegistrationStatus::Announced) {
            soon(one.changed()).await;
        }
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(async { while !matches!(one.changed().await, Some(RegistrationStatus::Pending)) {} }).await;
        soon(async { while !matches!(one.changed().await, Some(RegistrationStatus::Announced)) {} }).await;
        assert_eq!(other.get(&one.path()).await.unwrap().stat.owner, client.session_id());
        let permanent = orders("2").service_type(ServiceType::Permanent);
        let mut two = soon(registry(&client).register(permanent)).await.unwrap();
        {
            let mut changed = Box::pin(two.changed());
            assert!(futures_util::poll!(&mut changed).is_pending());
            soon(client.close()).await;
            assert!(soon(changed).await.is_none());
        }
        // The unseen changes are returned first, and then `None`.
        soon(async { while one.changed().await.is_some() {} }).await;
        for registration in [&mut one, &mut two] {
            assert!(matches!(registration.status(), RegistrationStatus::Closed));
            assert!(soon(registration.changed()).await.is_none(), "`changed` keeps returning `None`");
            assert_eq!(registration.last_error().unwrap().kind(), ErrorKind::Closed);
        }
    }
}

#[test]
fn an_instance_can_be_dropped_outside_of_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, client, registration, view) = runtime.block_on(async {
        let server = Backend::Embedded.start().await;
        let client = connect(&server).await;
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        let view = view(&client).await;
        until_ids(&view, &["1"]).await;
        (server, client, registration, view)
    });
    drop(registration);
    assert_eq!(view.pick().unwrap().id, "1");
    drop(view);
    runtime.block_on(async {
        until_deleted(&client, ONE).await;
        drop(server);
    });
    let _: Instance = Instance::named("x");
}
