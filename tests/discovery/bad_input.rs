//! Invalid input causes an error that names the value and the rule, and nothing is stored.

use crate::scene::{BASE, orders, registry};
use docent::discovery::ServiceType;
use docent::{ErrorKind, Instance, Registry};
use docent_battery::{Backend, both_backends};
use docent_tests::{connect, frames_since, refuses_bad_paths, soon};
use serde_json::json;

both_backends! {
    async fn bad_input_is_refused_before_anything_is_sent(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let before = server.front().trace().len();
        let registry = registry(&client);
        refuses_bad_paths(|path| Registry::new(&client, path));
        let mut bomb = json!(1);
        for _ in 0..65 {
            bomb = json!([bomb]);
        }
        let named = |name: &str| Instance::new(name, "10.0.0.7", 80).payload(json!(null));
        let good = || named("orders");
        for (instance, rule) in [
            (named(""), "service name \"\" must not be empty"),
            (named("a/b"), "service name \"a/b\" must not contain '/'"),
            (named(".."), "service name \"..\" must not be \".\" or \"..\""),
            (named("a b"), "service name \"a b\" must not contain spaces"),
            (named("a\0"), "must not contain control characters"),
            (good().id(""), "id \"\" must not be empty"),
            (good().id("a/b"), "id \"a/b\" must not contain '/'"),
            (good().id("."), "id \".\" must not be \".\" or \"..\""),
            (good().id("x".repeat(1025)), "id of 1025 bytes must be at most 1024 bytes long"),
            (Instance::new("orders", "", 80).payload(json!(null)), "address \"\" must not be empty"),
            (Instance::new("orders", "a b", 80).payload(json!(null)), "address \"a b\" must not contain spaces"),
            (Instance::new("orders", "10.0.0.7", 0).payload(json!(null)), "port 0 must be from 1 to 65535"),
            (good().ssl_port(0), "port 0 must be from 1 to 65535"),
            (good().service_type(ServiceType::DynamicSequential), "must not be registered"),
            (good().payload(bomb), "payload must not nest deeper than 64"),
        ] {
            for error in [
                soon(registry.register(instance.clone())).await.unwrap_err(),
                registry.announce(instance.clone()).unwrap_err(),
                soon(registry.consume("orders", instance.clone())).await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::InvalidInput);
                assert!(error.to_string().contains(rule), "the error does not contain {rule:?}: {error}");
            }
        }
        for length in [1_048_000, 1_048_575] {
            let large = good().payload(json!("x".repeat(length)));
            for error in [
                soon(registry.register(large.clone())).await.unwrap_err(),
                registry.announce(large.clone()).unwrap_err(),
                soon(registry.consume("orders", large.clone())).await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::TooLarge);
                assert!(error.to_string().ends_with("bytes, the limit is 1048575"), "{error}");
            }
        }
        let error = soon(registry.consume("a/b", good())).await.unwrap_err();
        assert!(error.to_string().contains("service name \"a/b\""), "{error}");
        let error = registry.announce(good().service_type(ServiceType::Static)).unwrap_err();
        assert!(error.to_string().contains("must be dynamic"), "{error}");
        assert_eq!(frames_since(&server, before), 0);
        assert_eq!(client.exists(BASE).await.unwrap(), None);
    }

    async fn a_bad_update_changes_nothing(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registration = soon(registry(&client).register(orders("1"))).await.unwrap();
        let before = client.get("/services/orders/1").await.unwrap();
        for (wrong, kind) in [
            (orders("1").ssl_port(0), ErrorKind::InvalidInput),
            (orders("1").payload("x".repeat(1_048_575)), ErrorKind::TooLarge),
            (orders("2"), ErrorKind::InvalidInput),
        ] {
            assert_eq!(soon(registration.update(wrong)).await.unwrap_err().kind(), kind);
        }
        assert_eq!(client.get("/services/orders/1").await.unwrap(), before);
        assert!(registration.last_error().is_none());
    }

    async fn nothing_that_can_be_printed_shows_a_payload(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let registry = registry(&client);
        let secret = orders("1").payload("geheim".to_owned());
        let mut text = format!("{secret:?} {registry:?} {:?}", Registry::builder(&client, BASE));
        let registration = soon(registry.register(secret)).await.unwrap();
        client.create("/services/orders/2", "geheim", docent::CreateMode::Persistent).await.unwrap();
        client.create("/services/orders/3", r#"{"payload":{"geheim":1}}"#, docent::CreateMode::Persistent).await.unwrap();
        let builder = registry.service_builder::<String>("orders");
        text += &format!("{builder:?}");
        let view = soon(builder.open()).await.unwrap();
        let mut changes = view.changes();
        text += &format!("{registration:?} {view:?} {:?} {:?} {changes:?}", view.instances(), view.pick().unwrap());
        for _ in 0..4 {
            text += &format!("{:?}", soon(futures_util::StreamExt::next(&mut changes)).await);
        }
        assert!(text.contains("orders") && text.contains("Unreadable") && !text.contains("geheim"), "{text}");
    }
}
