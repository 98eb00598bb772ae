//! P8: a node that cannot be read as an instance affects only itself.

use crate::connect;
use crate::scene::{ORDERS, ids, next, orders, registry, until_ids, view};
use docent::CreateMode;
use docent::node::{Acl, Permissions};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;

both_backends! {
    async fn p8_one_corrupt_node_is_reported_and_affects_nothing_else(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _good = soon(registry(&client).register(orders("good"))).await.unwrap();
        let bomb = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let bad: [(&str, &[u8], &str); 8] = [
            ("empty", b"", "there is no data"),
            ("text", b"at 10.0.0.7", "not JSON"),
            ("half", br#"{"name":"orders","id":"ha"#, "not JSON"),
            ("utf8", b"{\"name\":\"\xff\"}", "not JSON"),
            ("bomb", bomb.as_bytes(), "nests deeper than 64"),
            ("port", br#"{"name":"orders","id":"port","port":70000}"#, "port must be"),
            ("twice", br#"{"name":"orders","id":"twice","payload":["a"]}"#, "payload: a value has the wrong type"),
            ("type", br#"{"name":"orders","id":"type","serviceType":"secret"}"#, "serviceType must be"),
        ];
        for (id, data, _) in bad {
            other.create(&format!("{ORDERS}/{id}"), data.to_vec(), CreateMode::Persistent).await.unwrap();
        }
        let view = view(&other).await;
        let instances = view.instances();
        assert_eq!(ids(&view), ["good"]);
        for (id, _, why) in bad {
            let unreadable = instances.unreadable().find(|unreadable| unreadable.id == id).unwrap();
            assert!(unreadable.reason.contains(why), "{unreadable}");
            assert!(!unreadable.to_string().contains("secret"));
        }
        assert_eq!(instances.unreadable().len(), bad.len());
        // Other instances still come and go.
        let more = soon(registry(&client).register(orders("more"))).await.unwrap();
        until_ids(&view, &["good", "more"]).await;
        drop(more);
        until_ids(&view, &["good"]).await;
        // A repaired instance is shown, and an instance that became unreadable is not.
        let mut changes = view.changes();
        assert_eq!(next(&mut changes).await, "added good");
        for _ in bad {
            assert!(next(&mut changes).await.starts_with("unreadable"));
        }
        other.set("/services/orders/port", r#"{"name":"orders","id":"port","port":"70"}"#, None).await.unwrap();
        assert_eq!(next(&mut changes).await, "added port");
        other.set("/services/orders/port", "{", None).await.unwrap();
        assert_eq!([next(&mut changes).await, next(&mut changes).await], ["removed port", "unreadable port"]);
        other.delete("/services/orders/port", None).await.unwrap();
        other.delete("/services/orders/empty", None).await.unwrap();
        until_unreadable(&view, bad.len() - 2).await;
    }

    async fn a_foreign_weight_hides_no_instance(backend: Backend) {
        let server = backend.start().await;
        let other = connect(&server).await;
        let foreign = [
            ("1", "0.5", Some(1)),
            ("2", "2.5", Some(3)),
            ("3", "-3", None),
            ("4", "4294967296", Some(u32::MAX)),
            ("5", "1e400", Some(u32::MAX)),
            ("6", "\"heavy\"", None),
            ("7", "null", None),
            ("8", "-0.0", Some(0)),
        ];
        other.create("/services", "", CreateMode::Persistent).await.unwrap();
        other.create(ORDERS, "", CreateMode::Persistent).await.unwrap();
        for (id, weight, _) in foreign {
            let json = format!(r#"{{"name":"orders","id":"{id}","payload":"{id}","weight":{weight}}}"#);
            other.create(&format!("{ORDERS}/{id}"), json, CreateMode::Persistent).await.unwrap();
        }
        let view = view(&other).await;
        let instances = view.instances();
        assert_eq!(instances.unreadable().len(), 0, "{instances:?}");
        for (id, weight, read) in foreign {
            assert_eq!(instances.get(id).unwrap().weight, read, "{weight}");
        }
    }

    async fn p8_an_unreadable_node_is_reported_and_its_last_data_is_kept(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let _one = soon(registry(&client).register(orders("1"))).await.unwrap();
        let hidden = Acl::new(Permissions::WRITE | Permissions::DELETE | Permissions::ADMIN, "world", "anyone");
        let json = r#"{"name":"orders","id":"2","payload":"2"}"#;
        other.create("/services/orders/2", json, CreateMode::Persistent).await.unwrap();
        other.set_acl("/services/orders/2", [hidden], None).await.unwrap();
        let view = view(&other).await;
        assert_eq!(ids(&view), ["1"]);
        let unreadable = view.instances().unreadable().next().cloned().unwrap();
        assert_eq!(unreadable.id, "2");
        assert!(unreadable.reason.contains("permission denied"), "{unreadable}");
        other.set_acl("/services/orders/2", [Acl::open_unsafe()], None).await.unwrap();
        until_ids(&view, &["1", "2"]).await;
        assert_eq!(view.instances().unreadable().len(), 0);
    }

    async fn unknown_fields_of_other_clients_survive_an_update(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let json = r#"{"name":"orders","id":"1","address":null,"port":80,"sslPort":null,"payload":"java","registrationTimeUTC":5,"serviceType":"PERMANENT","uriSpec":null,"enabled":true,"zone":{"b":[1.50],"a":2}}"#;
        other.create("/services/orders/1", json, CreateMode::Persistent).await.unwrap();
        let view = view(&client).await;
        let read = view.instances().get("1").unwrap().as_ref().clone();
        let registration = soon(registry(&client).register(read.weight(2))).await.unwrap();
        let written = other.get("/services/orders/1").await.unwrap().data;
        assert_eq!(written, json.replace("\"enabled\":true,", "\"enabled\":true,\"weight\":2,"));
        soon(registration.deregister()).await.unwrap();
    }
}

async fn until_unreadable(view: &docent::Service<String>, count: usize) {
    soon(async {
        while view.instances().unreadable().len() != count {
            docent_tests::pause().await;
        }
    })
    .await;
}
