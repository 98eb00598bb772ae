//! Layered configurations in the layout of Spring Cloud Zookeeper.

use crate::limits::watches;
use crate::{builder, connect};
use docent::config::{
    LayeredChange, LayeredConfig, LayeredConfigBuilder, LayeredSubscription, Raw, RejectionReason,
    SubscribeError,
};
use docent::node::{Acl, Permissions};
use docent::{Client, Config, CreateMode, ErrorKind};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Settings {
    name: String,
    server: Server,
    hosts: Vec<String>,
    pairs: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Server {
    port: u16,
    max_threads: Option<u32>,
}

/// Layers of the application `orders` with the profiles `eu` and `test`, the weakest first.
const LAYERS: [&str; 6] =
    ["application", "application,eu", "application,test", "orders", "orders,eu", "orders,test"];

fn orders(client: &Client) -> LayeredConfigBuilder<Settings> {
    LayeredConfig::builder(client, "orders").profiles(["eu", "test"])
}

/// Writes a text as Spring Cloud reads it: a node for each segment, without a history.
async fn write(client: &Client, path: &str, text: &str) {
    let node = Config::<String>::builder_with(client, path, Raw).history(0).build().unwrap();
    soon(node.publish(&text.to_owned())).await.unwrap();
}

async fn delete(client: &Client, path: &str) {
    soon(client.delete(path, None)).await.unwrap();
}

async fn until(subscription: &LayeredSubscription<Settings>, wanted: impl Fn(&Settings) -> bool) {
    soon(async {
        while !wanted(&subscription.current()) {
            docent_tests::pause().await;
        }
    })
    .await;
}

/// Returns the next value as its name and port, or the next rejection as its text after `!`.
async fn next(subscription: &mut LayeredSubscription<Settings>) -> String {
    match soon(subscription.changed()).await {
        Some(Ok(LayeredChange::Value(value))) => format!("{} {}", value.name, value.server.port),
        Some(Ok(LayeredChange::Refused(rejection))) => format!("!{rejection}"),
        other => panic!("{other:?}"),
    }
}

both_backends! {
    async fn each_layer_overrides_every_weaker_one(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for (strong, layer) in LAYERS.iter().enumerate() {
            for other in 0..LAYERS.len() {
                if other != strong {
                    let (low, high) = (other.min(strong), other.max(strong));
                    write(&client, &format!("/config/{layer}/pairs/{low}-{high}"), layer).await;
                }
            }
        }
        let config = orders(&client).build().unwrap();
        assert_eq!(config.path(), "/config/orders");
        assert_eq!(config.layers().collect::<Vec<_>>(), LAYERS.map(|layer| format!("/config/{layer}")));
        let subscription = soon(config.subscribe()).await.unwrap();
        let current = subscription.current();
        assert_eq!(current.pairs.len(), 15);
        for (pair, text) in &current.pairs {
            let strong: usize = pair.split_once('-').unwrap().1.parse().unwrap();
            assert_eq!(text, LAYERS[strong], "{pair}");
            let origin = current.origin(&format!("pairs.{pair}")).unwrap();
            let path = format!("/config/{text}/pairs/{pair}");
            assert_eq!((&*origin.path, origin.layer), (path.as_str(), strong));
            let stat = soon(client.exists(&path)).await.unwrap().unwrap();
            let revision = origin.revision;
            assert_eq!((revision.mzxid, revision.version), (stat.mzxid, stat.version));
        }
        assert_eq!(current.origins().len(), 15);
        // The same profiles in the other order.
        let config = orders(&client).profiles(["test", "eu"]).build().unwrap();
        let current = soon(config.subscribe()).await.unwrap().current();
        assert_eq!(current.pairs["1-2"], "application,eu");
        assert_eq!(current.pairs["4-5"], "orders,eu");
    }

    async fn the_layout_can_be_changed(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        write(&client, "/teams/one/settings/all/name", "all").await;
        write(&client, "/teams/one/settings/all::test/server/port", "1").await;
        write(&client, "/teams/one/settings/orders/server/port", "2").await;
        write(&client, "/teams/one/settings/orders::test/server/max-threads", "3").await;
        let config = orders(&client).root("/teams/one/settings").default_context("all").profile_separator("::");
        let config = config.profiles(["test"]).build().unwrap();
        let current = soon(config.subscribe()).await.unwrap().current();
        assert_eq!((&*current.name, current.server.port, current.server.max_threads), ("all", 2, Some(3)));
        // The default context as the application has each layer once.
        let shared = LayeredConfig::<Settings>::builder(&client, "application").profiles(["a"]).root("/");
        let shared = shared.build().unwrap();
        assert_eq!(shared.layers().collect::<Vec<_>>(), ["/application", "/application,a"]);
        for (config, rule) in [
            (orders(&client).root("config"), "path \"config/application\""),
            (orders(&client).profiles([""]), "profile \"\" must not be empty or contain '/'"),
            (orders(&client).profiles(["a/b"]), "profile \"a/b\" must not be empty or contain '/'"),
            (orders(&client).profile_separator(""), "profile separator \"\" must not be empty"),
            (orders(&client).default_context(""), "default context \"\" must not be empty"),
            (LayeredConfig::builder(&client, ""), "application \"\" must not be empty"),
            (LayeredConfig::builder(&client, "a//b"), "path \"/config/a//b\""),
        ] {
            let error = config.build().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(rule), "{error}");
        }
    }

    async fn keys_at_all_depths_become_one_typed_value(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for (below, text) in [
            ("application/hosts", "a, b"),
            ("application/server/max-threads", "5"),
            ("application/pairs/x", "weak"),
            ("application,test/hosts[0]", "c"),
            ("orders/server", "a text beside the keys below"),
            ("orders/server/port", "8080"),
            ("orders/server/maxThreads", "7"),
            ("orders/name", "Gr\u{fc}\u{df}e"),
            ("orders/pairs/empty", ""),
            ("orders/pairs[dotted.key]", "dotted"),
            ("orders/unknown/deep/key", "ignored"),
        ] {
            write(&client, &format!("/config/{below}"), text).await;
        }
        let config = orders(&client).build().unwrap();
        let subscription = soon(config.subscribe()).await.unwrap();
        let pairs = [("x", "weak"), ("empty", ""), ("dotted.key", "dotted")];
        let wanted = Settings {
            name: "Gr\u{fc}\u{df}e".to_owned(),
            server: Server { port: 8080, max_threads: Some(7) },
            hosts: vec!["c".to_owned()],
            pairs: pairs.map(|(key, text)| (key.to_owned(), text.to_owned())).into(),
        };
        let current = subscription.current();
        assert_eq!(**current, wanted);
        let path = |key: &str| current.origin(key).map(|origin| origin.path.to_string());
        for key in ["server.max-threads", "server.maxThreads", "server.max_threads"] {
            assert_eq!(path(key).as_deref(), Some("/config/orders/server/maxThreads"), "{key}");
        }
        assert_eq!(path("server").as_deref(), Some("/config/orders/server"));
        assert_eq!(path("hosts[0]").as_deref(), Some("/config/application,test/hosts[0]"));
        assert_eq!(path("unknown.deep.key").as_deref(), Some("/config/orders/unknown/deep/key"));
        assert_eq!(path("server.none"), None);
    }

    async fn a_layer_appears_and_disappears(backend: Backend) {
        let server = backend.start().await;
        let (client, operator) = (connect(&server).await, connect(&server).await);
        let config = orders(&client).build().unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        assert_eq!(**subscription.current(), Settings::default());
        assert!(!subscription.is_stale() && subscription.current().origins().len() == 0);
        write(&operator, "/config/application/name", "weak").await;
        until(&subscription, |settings| settings.name == "weak").await;
        write(&operator, "/config/orders,test/name", "strong").await;
        until(&subscription, |settings| settings.name == "strong").await;
        write(&operator, "/config/orders/name", "between").await;
        write(&operator, "/config/orders/server/port", "1").await;
        until(&subscription, |settings| settings.server.port == 1).await;
        assert_eq!(subscription.current().name, "strong");
        delete(&operator, "/config/orders,test/name").await;
        // The folder is a container, which the servers may delete first.
        let layer = soon(operator.delete("/config/orders,test", None)).await;
        assert!(layer.is_ok() || layer.is_err_and(|error| error.kind() == ErrorKind::NoNode));
        until(&subscription, |settings| settings.name == "between").await;
        // The watches of the deleted layer were set again.
        write(&operator, "/config/orders,test/name", "again").await;
        until(&subscription, |settings| settings.name == "again").await;
        let mut changes = Vec::new();
        while changes.last().is_none_or(|change| change != "again 1") {
            changes.push(next(&mut subscription).await);
        }
        assert!(changes.iter().all(|change| !change.starts_with('!')), "{changes:?}");
        // A change of a weaker text that is overridden is no change of the value.
        write(&operator, "/config/application/name", "weaker").await;
        write(&operator, "/config/orders/server/port", "2").await;
        assert_eq!(next(&mut subscription).await, "again 2");
    }

    async fn an_invalid_text_keeps_the_last_valid_value_until_it_is_corrected(backend: Backend) {
        let server = backend.start().await;
        let (client, operator) = (connect(&server).await, connect(&server).await);
        write(&operator, "/config/orders/name", "orders").await;
        write(&operator, "/config/application/server/port", "1").await;
        // The folder exists, so that no value changes when it is created.
        write(&operator, "/config/orders,eu/server/max-threads", "5").await;
        let rule = |settings: &Settings| match settings.server.port {
            9 => Err("port 9 is reserved"),
            _ => Ok(()),
        };
        let config = orders(&client).validate(rule).build().unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        write(&operator, "/config/orders,eu/server/port", "secret").await;
        let refused = "!the value of version 0: key \"server.port\" of /config/orders,eu/server/port must be an integer from 0 to 65535";
        assert_eq!(next(&mut subscription).await, refused);
        let rejection = subscription.rejection().unwrap();
        assert_eq!(rejection.reason(), RejectionReason::Codec);
        assert!(rejection.detail().contains("\"secret\""), "{}", rejection.detail());
        assert_eq!((&*subscription.current().name, subscription.current().server.port), ("orders", 1));
        // A new subscription starts with the last valid value, and reports the rejection.
        assert_eq!(next(&mut soon(config.subscribe()).await.unwrap()).await, refused);
        // Another change does not hide the invalid text, and is not used.
        write(&operator, "/config/orders/name", "changed").await;
        assert_eq!(next(&mut subscription).await, refused);
        assert_eq!(subscription.current().name, "orders");
        write(&operator, "/config/orders,eu/server/port", "2").await;
        assert_eq!(next(&mut subscription).await, "changed 2");
        assert!(subscription.rejection().is_none());
        write(&operator, "/config/orders,eu/server/port", "9").await;
        assert_eq!(next(&mut subscription).await, "!the value: rejected by validation");
        delete(&operator, "/config/orders,eu/server/port").await;
        assert_eq!(next(&mut subscription).await, "changed 1");
        client.set("/config/orders/name", &b"a\xff"[..], None).await.unwrap();
        assert_eq!(
            next(&mut subscription).await,
            "!the value of version 2: key \"name\" of /config/orders/name must be UTF-8, and is not at byte 1"
        );
        // A stronger text makes an invalid one irrelevant.
        write(&operator, "/config/orders,test/name", "mended").await;
        assert_eq!(next(&mut subscription).await, "mended 1");
    }

    async fn a_required_key_without_a_text_is_named(backend: Backend) {
        #[derive(Debug, Deserialize)]
        struct Strict {
            server: Port,
        }
        #[derive(Debug, Deserialize)]
        struct Port {
            port: u16,
        }
        let server = backend.start().await;
        let client = connect(&server).await;
        write(&client, "/config/orders/server/name", "x").await;
        let config = LayeredConfig::<Strict>::builder(&client, "orders").build().unwrap();
        let error = soon(config.subscribe()).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "config \"/config/orders\": the published value was rejected: the value: key \"server.port\" must have a value"
        );
        assert!(matches!(error, SubscribeError::Refused { .. }) && error.is_retryable());
        write(&client, "/config/orders/server/port", "7").await;
        assert_eq!(soon(config.subscribe()).await.unwrap().current().server.port, 7);
    }

    async fn a_text_that_may_not_be_read_is_reported(backend: Backend) {
        let server = backend.start().await;
        let (client, operator) = (connect(&server).await, connect(&server).await);
        write(&operator, "/config/orders/name", "orders").await;
        let config = orders(&client).build().unwrap();
        let mut subscription = soon(config.subscribe()).await.unwrap();
        let closed = Acl::new(Permissions::ADMIN | Permissions::WRITE, "world", "anyone");
        operator.set_acl("/config/orders/name", [closed], None).await.unwrap();
        // Without the permission, the servers send no event. The next session reads the node again.
        server.expire(client.session_id().unwrap()).await.unwrap();
        let refused = next(&mut subscription).await;
        assert!(refused.contains("key \"name\" of /config/orders/name cannot be read"), "{refused}");
        assert_eq!(subscription.rejection().unwrap().reason(), RejectionReason::Unreadable);
        assert_eq!(subscription.current().name, "orders");
        write(&operator, "/config/orders,eu/name", "stronger").await;
        assert_eq!(next(&mut subscription).await, "stronger 0");
    }

    async fn changes_during_a_disconnect_and_between_sessions_are_seen(backend: Backend) {
        let server = backend.start().await;
        let (proxy, operator) = (server.proxy().await, connect(&server).await);
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        for layer in LAYERS {
            write(&operator, &format!("/config/{layer}/pairs/{layer}"), "1").await;
        }
        write(&operator, "/config/orders/name", "orders").await;
        let mut subscription = soon(orders(&client).build().unwrap().subscribe()).await.unwrap();
        proxy.cut().await;
        soon(async { while !subscription.is_stale() { docent_tests::pause().await; } }).await;
        assert!(subscription.stale_for().is_some());
        assert_eq!(subscription.current().pairs.len(), 6);
        delete(&operator, "/config/orders,eu/pairs/orders,eu").await;
        write(&operator, "/config/application/pairs/application", "2").await;
        write(&operator, "/config/orders,test/name", "strong").await;
        proxy.heal().await.unwrap();
        let seen = |settings: &Settings| {
            (settings.pairs.len(), &*settings.name) == (5, "strong") && settings.pairs["application"] == "2"
        };
        until(&subscription, seen).await;
        soon(async { while subscription.is_stale() { docent_tests::pause().await; } }).await;
        server.expire(client.session_id().unwrap()).await.unwrap();
        delete(&operator, "/config/orders,test/name").await;
        write(&operator, "/config/orders/name", "new").await;
        write(&operator, "/config/orders,eu/pairs/orders,eu", "3").await;
        until(&subscription, |settings| (settings.pairs.len(), &*settings.name) == (6, "new")).await;
        // The watches of the new session work.
        write(&operator, "/config/application/pairs/application", "4").await;
        until(&subscription, |settings| settings.pairs["application"] == "4").await;
        soon(client.close()).await;
        while soon(subscription.changed()).await.is_some() {}
        assert!(subscription.is_stale());
        assert_eq!(subscription.current().name, "new");
        let Err(SubscribeError::Core(error)) = soon(orders(&client).build().unwrap().subscribe()).await else { panic!() };
        assert_eq!(error.kind(), ErrorKind::Closed);
    }

    async fn subscriptions_share_the_watches_of_all_layers_and_leave_none(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        for layer in LAYERS {
            write(&client, &format!("/config/{layer}/pairs/{layer}"), "1").await;
        }
        client.create("/config/orders/pairs/_history", "", CreateMode::Persistent).await.unwrap();
        let config = orders(&client).build().unwrap();
        // A subscription that is abandoned while it is read leaves nothing behind.
        drop(futures_util::FutureExt::now_or_never(config.subscribe()));
        let subscriptions = [soon(config.subscribe()).await.unwrap(), soon(config.subscribe()).await.unwrap()];
        assert_eq!(subscriptions[1].clone().current().pairs.len(), 6);
        // One watch on each node's data and one on its children: the layer, `pairs` and its key.
        let expected = if crate::PERSISTENT { 2 * LAYERS.len() } else { 2 * 3 * LAYERS.len() };
        soon(async { while watches(&server).is_some_and(|watches| watches != expected) { client.sync("/").await.unwrap(); } }).await;
        drop(subscriptions);
        soon(async { while watches(&server).is_some_and(|watches| watches > 0) { client.sync("/").await.unwrap(); } }).await;
    }
}
