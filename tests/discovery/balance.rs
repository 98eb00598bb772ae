//! Picks from a live view.

use crate::scene::{orders, registry, until_ids, view};
use docent::discovery::{OutlierPolicy, PickPolicy, Registration};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, soon};
use std::collections::BTreeMap;

both_backends! {
    async fn every_policy_picks_as_documented_from_the_available_instances(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mut registrations = Vec::new();
        for (id, weight) in [("1", 0), ("2", 1), ("3", 1)] {
            registrations.push(soon(registry(&client).register(orders(id).weight(weight))).await.unwrap());
        }
        for (policy, expected) in [
            (PickPolicy::RoundRobin, &["1", "2", "3"][..]),
            (PickPolicy::Random, &["1", "2", "3"]),
            (PickPolicy::PowerOfTwo, &["1", "2", "3"]),
            (PickPolicy::Weighted, &["2", "3"]),
        ] {
            let view = soon(registry(&other).service_builder::<String>("orders").policy(policy).open()).await.unwrap();
            let mut picks = BTreeMap::new();
            for _ in 0..300 {
                *picks.entry(view.pick().unwrap().id.clone()).or_insert(0) += 1;
            }
            assert_eq!(picks.keys().collect::<Vec<_>>(), expected, "{policy:?}");
            if policy == PickPolicy::RoundRobin {
                assert!(picks.values().all(|count| *count == 100), "{picks:?}");
            }
        }
        let sticky = soon(registry(&other).service_builder::<String>("orders").policy(PickPolicy::Sticky).open()).await.unwrap();
        let chosen = sticky.pick().unwrap().id.clone();
        assert!((0..20).all(|_| sticky.pick().unwrap().id == chosen));
        let at = registrations.iter().position(|one| one.id() == chosen).unwrap();
        soon(registrations.remove(at).deregister()).await.unwrap();
        let remaining: Vec<_> = registrations.iter().map(Registration::id).collect();
        until_ids(&sticky, &remaining.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let next = sticky.pick().unwrap().id.clone();
        assert!(next != chosen && (0..20).all(|_| sticky.pick().unwrap().id == next));
    }

    async fn a_failing_instance_is_set_aside_for_all_clones_of_the_view(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = view(&other).await;
        let fails = |id: &str| view.pick_where(|instance| instance.id == id).unwrap().failed();
        fails("1");
        assert!((0..4).any(|_| view.pick().unwrap().id == "1"), "one failure is not enough to set an instance aside");
        fails("1");
        let clone = view.clone();
        assert!((0..20).all(|_| clone.pick().unwrap().id == "2"));
        assert_eq!(view.instances().len(), 2, "the instance is still shown");
        // If no other instance is left, the failing instance is picked again.
        soon(two.deregister()).await.unwrap();
        until_ids(&view, &["1"]).await;
        assert_eq!(view.pick().unwrap().id, "1");
        let never = soon(registry(&other).service_builder::<String>("orders").outlier_policy(OutlierPolicy::never()).open()).await.unwrap();
        for _ in 0..10 {
            never.pick().unwrap().failed();
        }
    }

    async fn round_robin_is_fair_for_each_filter(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let mut registrations = Vec::new();
        for id in ["a1", "a2", "b1", "b2"] {
            registrations.push(soon(registry(&client).register(orders(id))).await.unwrap());
        }
        let view = view(&other).await;
        let mut picks = BTreeMap::new();
        for filter in ["a", "b"].iter().cycle().take(200) {
            let picked = view.pick_where(|instance| instance.id.starts_with(filter)).unwrap();
            *picks.entry(picked.id.clone()).or_insert(0) += 1;
        }
        assert_eq!(picks.into_values().collect::<Vec<_>>(), [50; 4]);
        // The picks stay even if the filters share an instance, and if there are picks without a filter.
        let mut picks = BTreeMap::new();
        for turn in 0..300 {
            let picked = match turn % 3 {
                0 => view.pick_where(|instance| instance.id != "a1"),
                1 => view.pick_where(|instance| instance.id == "a1" || instance.id == "b1"),
                _ => view.pick(),
            };
            *picks.entry((turn % 3, picked.unwrap().id.clone())).or_insert(0) += 1;
        }
        for ((turn, id), count) in &picks {
            let share = [34, 50, 25][*turn];
            assert!((share - 1..=share).contains(count), "{turn} {id} {picks:?}");
        }
        assert_eq!(picks.len(), 9);
    }

    async fn an_instance_at_another_address_starts_without_recorded_failures(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let _two = soon(registry(&client).register(orders("2"))).await.unwrap();
        let view = view(&other).await;
        for _ in 0..2 {
            view.pick_where(|instance| instance.id == "1").unwrap().failed();
        }
        let picks_one = || (0..20).any(|_| view.pick().unwrap().id == "1");
        soon(one.update(orders("1").payload("still there".to_owned()))).await.unwrap();
        let payload = |view: &docent::Service<String>| view.instances().get("1").unwrap().payload.clone();
        soon(async { while payload(&view).as_deref() != Some("still there") { docent_tests::pause().await; } }).await;
        assert!(!picks_one());
        let mut moved = orders("1");
        moved.port = Some(9090);
        soon(one.update(moved)).await.unwrap();
        soon(async { while !picks_one() { docent_tests::pause().await; } }).await;
    }
}
