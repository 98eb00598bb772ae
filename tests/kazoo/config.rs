//! `ConfigTree` with texts, in the layout that Spring Cloud reads, and kazoo as the writer and reader.

use crate::beside_kazoo;
use crate::client::both;
use docent::Config;
use docent::config::{Raw, TreeSubscription};
use docent_battery::Backend;
use docent_tests::soon;

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

beside_kazoo! {
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
