//! The properties of a registry, with at least one test each. P8 is in `unreadable`.

use crate::connect;
use crate::scene::{
    ORDERS, behind_proxy, ids, next, orders, registry, until_deleted, until_ids, until_owned, view,
};
use docent::discovery::{PickPolicy, Registration, RegistrationStatus};
use docent::{Client, ConnectionState, CreateMode};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::{MultiOp, OpCode, Request};
use docent_tests::{SESSION, SHORT_SESSION, soon, within};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Returns the registered instances with the sessions that own them.
async fn owners(other: &Client) -> BTreeMap<String, i64> {
    let mut owners = BTreeMap::new();
    let Ok(children) = other.children(ORDERS).await else { return owners };
    for name in children.names {
        if let Ok(Some(stat)) = other.exists(&format!("{ORDERS}/{name}")).await {
            owners.insert(name, stat.owner.unwrap());
        }
    }
    owners
}

both_backends! {
    async fn p1_a_present_instance_was_registered_by_its_session_and_not_deregistered(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (a, a_proxy) = behind_proxy(&server, SESSION).await;
        let (b, b_proxy) = behind_proxy(&server, SESSION).await;
        let mut kept: BTreeMap<String, (Registration, i64)> = BTreeMap::new();
        for round in 0..12 {
            let (client, proxy) = if round % 2 == 0 { (&a, &a_proxy) } else { (&b, &b_proxy) };
            let id = (round % 5).to_string();
            match kept.remove(&id) {
                Some((registration, _)) => {
                    if round % 3 == 0 {
                        a_proxy.add(Rule::on(OpCode::Delete).reset_after());
                    }
                    soon(registration.deregister()).await.unwrap();
                }
                None => {
                    if round % 3 == 0 {
                        proxy.add(Rule::on(OpCode::Create2).reset_after());
                    }
                    let registration = soon(registry(client).register(orders(&id))).await.unwrap();
                    kept.insert(id, (registration, client.session_id().unwrap()));
                }
            }
            let expected: BTreeMap<_, _> = kept.iter().map(|(id, (_, session))| (id.clone(), *session)).collect();
            assert_eq!(owners(&other).await, expected, "after round {round}");
        }
    }

    async fn p2_a_crashed_instance_is_soon_deleted_and_a_closed_one_before_close_returns(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SHORT_SESSION).await;
        let _crashes = soon(registry(&client).register(orders("1"))).await.unwrap();
        let closes = connect(&server).await;
        let _closed = soon(registry(&closes).register(orders("2"))).await.unwrap();
        soon(closes.close()).await;
        assert_eq!(owners(&other).await.into_keys().collect::<Vec<_>>(), ["1"]);
        proxy.cut().await;
        // The timeout and a tick are 2.2 s, but the server of a busy machine may be late.
        within(Duration::from_secs(8), until_deleted(&other, "/services/orders/1")).await;
    }

    async fn p3_the_instance_has_its_latest_data_when_a_new_session_is_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        for round in 2..5 {
            soon(registration.update(orders("1").payload(format!("round {round}")))).await.unwrap();
            server.expire(client.session_id().unwrap()).await.unwrap();
            let state = client.state().wait_for(|now| now.generation == round && *now == ConnectionState::Connected).await.unwrap();
            assert_eq!(state.generation, round);
            // The node is complete as soon as the client reports the connection.
            other.sync("/").await.unwrap();
            let node = other.get("/services/orders/1").await.unwrap();
            assert_eq!(node.stat.owner, client.session_id());
            assert!(String::from_utf8_lossy(&node.data).contains(&format!("round {round}")));
        }
    }

    async fn p4_a_deregistered_instance_stays_so_across_lost_links_and_sessions(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        for fault in [Rule::on(OpCode::Delete).reset_after(), Rule::on(OpCode::Delete).reset_before(), Rule::on(OpCode::Sync).reset_after()] {
            let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
            proxy.add(fault);
            soon(registration.deregister()).await.unwrap();
            assert_eq!(other.exists("/services/orders/1").await.unwrap(), None);
            proxy.reset().await;
            let session = client.session_id().unwrap();
            server.expire(session).await.unwrap();
            let generation = client.state().current().generation;
            soon(client.state().wait_for(|now| now.generation > generation && *now == ConnectionState::Connected)).await;
            assert_eq!(other.exists("/services/orders/1").await.unwrap(), None);
        }
        let creates = proxy.trace().iter().filter(|frame| frame.is_reply(OpCode::Create2) && frame.path.as_ref().is_some_and(|path| path.ends_with("/orders/1"))).count();
        assert!(creates <= 2 * 3, "{creates} creates for three registrations, of which one finds no parent");
    }

    async fn p5_only_the_node_of_the_own_id_is_written_or_deleted(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        let touched: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&touched);
        // A rule that never fires observes all requests.
        proxy.add(Rule::on_any().when(move |request| {
            let Request::Multi(ops) = request else { return false };
            let changes = ops.iter().filter(|op| matches!(op, MultiOp::Delete { .. } | MultiOp::SetData { .. }));
            let paths = changes.map(|op| op.path().to_owned()).filter(|path| !path.contains("/_docent/"));
            seen.lock().unwrap().extend(paths);
            false
        }).hold());
        let foreign = soon(registry(&other).register(orders("2"))).await.unwrap();
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let before = other.exists("/services/orders/2").await.unwrap();
        soon(one.update(orders("1").payload("new".to_owned()))).await.unwrap();
        // Another client re-creates the node between two checks. The node then belongs to that client.
        server.expire(client.session_id().unwrap()).await.unwrap();
        until_owned(&client, &other, "/services/orders/1").await;
        other.delete("/services/orders/1", None).await.unwrap();
        until_owned(&client, &other, "/services/orders/1").await;
        soon(one.deregister()).await.unwrap();
        other.create("/services/orders/1", "theirs", CreateMode::Ephemeral).await.unwrap();
        let waiting = registry(&client).announce(orders("1")).unwrap();
        soon(async { while !matches!(waiting.status(), RegistrationStatus::Occupied { .. }) { docent_tests::pause().await; } }).await;
        soon(waiting.deregister()).await.unwrap();
        assert_eq!(other.get("/services/orders/1").await.unwrap().data, "theirs");
        assert_eq!(other.exists("/services/orders/2").await.unwrap(), before);
        let touched = touched.lock().unwrap().clone();
        assert!(!touched.is_empty() && touched.iter().all(|path| path.ends_with("/services/orders/1")), "{touched:?}");
        soon(foreign.deregister()).await.unwrap();
    }

    async fn p6_no_instance_reverts_to_older_data_and_the_view_converges(backend: Backend) {
        let server = backend.start().await;
        let (writer, other) = (connect(&server).await, connect(&server).await);
        let (client, proxy) = behind_proxy(&server, SESSION).await;
        let view = view(&client).await;
        let mut registrations = Vec::new();
        for id in ["a", "b", "c"] {
            registrations.push(soon(registry(&writer).register(orders(id))).await.unwrap());
        }
        let watching = tokio::spawn({
            let view = view.clone();
            async move {
                let (mut changes, mut newest) = (view.changes(), BTreeMap::new());
                loop {
                    let instances = view.instances();
                    for (id, _) in instances.all() {
                        let version = instances.version(id).unwrap();
                        let known = newest.insert(id.to_owned(), version);
                        assert!(known <= Some(version), "version {version} of {id} is not newer than {known:?}");
                    }
                    if newest.len() == 4 && instances.all().len() == 4 {
                        return newest;
                    }
                    changes.next().await.unwrap().unwrap();
                }
            }
        });
        for round in 0..15 {
            for registration in &registrations {
                let id = registration.id();
                soon(registration.update(orders(&id).payload(round.to_string()))).await.unwrap();
            }
            match round {
                5 => proxy.reset().await,
                8 => server.expire(client.session_id().unwrap()).await.unwrap(),
                10 => {
                    proxy.cut().await;
                    soon(registrations.remove(0).deregister()).await.unwrap();
                    registrations.push(soon(registry(&writer).register(orders("a"))).await.unwrap());
                    proxy.heal().await.unwrap();
                }
                _ => {}
            }
        }
        registrations.push(soon(registry(&writer).register(orders("end"))).await.unwrap());
        soon(watching).await.unwrap();
        // When no more changes occur, the view equals the tree.
        for id in ["a", "b", "c", "end"] {
            let expected = other.exists(&format!("{ORDERS}/{id}")).await.unwrap().unwrap().mzxid;
            soon(async { while view.instances().version(id) != Some(expected) { docent_tests::pause().await; } }).await;
        }
        assert_eq!(ids(&view), ["a", "b", "c", "end"]);
    }

    async fn p7_a_server_restart_makes_the_view_stale_and_reports_no_removal(backend: Backend) {
        let server = backend.start_own().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = view(&other).await;
        let mut changes = view.changes();
        for expected in ["added 1", "added 2"] {
            assert_eq!(next(&mut changes).await, expected);
        }
        server.stop().await;
        soon(async { while !view.is_stale() { docent_tests::pause().await; } }).await;
        assert_eq!(ids(&view), ["1", "2"]);
        server.start_again().await;
        soon(async { while view.is_stale() { docent_tests::pause().await; } }).await;
        assert_eq!(ids(&view), ["1", "2"]);
        let _three = soon(registry(&client).register(orders("3"))).await.unwrap();
        assert_eq!(next(&mut changes).await, "added 3", "nothing was reported before the third instance");
    }

    async fn p9_only_members_of_the_present_view_are_picked(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        for policy in [PickPolicy::RoundRobin, PickPolicy::Random, PickPolicy::Sticky, PickPolicy::Weighted, PickPolicy::PowerOfTwo] {
            let view = soon(registry(&other).service_builder::<String>("orders").policy(policy).open()).await.unwrap();
            let mut registrations = Vec::new();
            for round in 0..12_usize {
                if round % 3 == 2 {
                    let removed: Registration = registrations.remove(0);
                    soon(removed.deregister()).await.unwrap();
                } else {
                    registrations.push(soon(registry(&client).register(orders(&format!("{round}")))).await.unwrap());
                }
                let mut expected: Vec<_> = registrations.iter().map(Registration::id).collect();
                expected.sort();
                until_ids(&view, &expected.iter().map(String::as_str).collect::<Vec<_>>()).await;
                for _ in 0..20 {
                    let picked = view.pick().unwrap();
                    assert!(expected.contains(&picked.id), "{policy:?}: {} is not in {expected:?}", picked.id);
                }
            }
            for registration in registrations {
                soon(registration.deregister()).await.unwrap();
            }
            until_ids(&view, &[]).await;
            assert!(view.pick().is_err());
        }
    }
}
