//! `ConfigTree` with texts and `LayeredConfig`, in the layout that Spring Cloud reads, and kazoo as the
//! writer and reader.

use crate::beside_kazoo;
use crate::client::both;
use docent::Config;
use docent::config::{LayeredConfig, Raw, TreeSubscription};
use docent_battery::Backend;
use docent_tests::soon;
use serde::Deserialize;

async fn until(subscription: &TreeSubscription<String>, wanted: &[&str]) {
    let shown = || {
        let current = subscription.current();
        current.iter().map(|(key, text)| format!("{key}={}", text.value())).collect::<Vec<_>>()
    };
    soon(async {
        while shown() != wanted {
            docent_tests::pause().await;
        }
    })
    .await;
}

#[derive(Debug, PartialEq, Default, Deserialize)]
#[serde(default)]
struct Settings {
    greeting: String,
    hosts: Vec<String>,
    pool: Pool,
}

#[derive(Debug, PartialEq, Default, Deserialize)]
#[serde(default)]
struct Pool {
    max_size: u32,
    enabled: bool,
}

beside_kazoo! {
    async fn layers_that_kazoo_writes_become_one_value(backend: Backend) {
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let config = LayeredConfig::<Settings>::builder(&client, "orders").profiles(["eu"]).build().unwrap();
        let subscription = soon(config.subscribe()).await.unwrap();
        assert_eq!(**subscription.current(), Settings::default());
        let shared = kazoo.make("text-tree /config/application").await;
        let orders = kazoo.make("text-tree /config/orders").await;
        let european = kazoo.make("text-tree /config/orders,eu").await;
        shared.done("write greeting hello").await;
        shared.done("write pool/max-size 8").await;
        shared.done("write pool/enabled true").await;
        shared.done("write hosts a,b").await;
        orders.done("write pool/maxSize 16").await;
        orders.done("write hosts[0] c").await;
        european.done("write greeting gr\u{fc}\u{df}e").await;
        let until = async |greeting: &str, host: &str, max_size: u32| {
            soon(async {
                while {
                    let now = subscription.current();
                    (&*now.greeting, &*now.hosts, now.pool.max_size) != (greeting, &[host.to_owned()], max_size)
                } {
                    docent_tests::pause().await;
                }
            })
            .await;
        };
        until("gr\u{fc}\u{df}e", "c", 16).await;
        assert!(subscription.current().pool.enabled);
        assert_eq!(&*subscription.current().origin("pool.max-size").unwrap().path, "/config/orders/pool/maxSize");
        orders.done("write pool/maxSize many").await;
        soon(async { while subscription.rejection().is_none() { docent_tests::pause().await; } }).await;
        orders.done("delete pool").await;
        european.done("delete greeting").await;
        until("hello", "c", 8).await;
        assert!(subscription.rejection().is_none());
    }

    async fn a_tree_of_texts_is_written_and_read_by_both(backend: Backend) {
        const ROOT: &str = "/config/orders,production";
        let server = backend.start().await;
        let (client, kazoo) = both(&server).await;
        let peer = kazoo.make(&format!("text-tree {ROOT}")).await;
        // Spring Cloud would read a history as keys.
        let tree = Config::<String>::builder_with(&client, ROOT, Raw).history(0).build_tree().unwrap();
        let subscription = soon(tree.subscribe()).await.unwrap();
        peer.done("write spring/datasource/url jdbc:h2:\u{e4}").await;
        peer.done("write spring/datasource/pool/size 8").await;
        peer.done("write name orders").await;
        let size = "spring/datasource/pool/size=8";
        until(&subscription, &["name=orders", size, "spring/datasource/url=jdbc:h2:\u{e4}"]).await;
        // Docent's texts are plain UTF-8, and a folder may have a value as well.
        let url = tree.key("spring/datasource/url").unwrap();
        soon(url.publish(&"jdbc:h2:\u{fc}".to_owned())).await.unwrap();
        soon(tree.key("spring/datasource").unwrap().publish(&"main".to_owned())).await.unwrap();
        assert_eq!(peer.done("read spring/datasource/url").await, ["jdbc:h2:\u{fc}"]);
        assert_eq!(peer.done("read spring/datasource").await, ["main"]);
        let children = client.children(url.path()).await.unwrap();
        assert_eq!(children.names, [""; 0], "no history");
        let main = "spring/datasource=main";
        until(&subscription, &["name=orders", main, size, "spring/datasource/url=jdbc:h2:\u{fc}"]).await;
        peer.done("delete spring").await;
        until(&subscription, &["name=orders"]).await;
    }
}
