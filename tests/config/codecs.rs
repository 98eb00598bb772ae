//! Configurations in the text formats that operators write.

use crate::connect;
use docent::config::{Change, Codec, ConfigTree, Properties, PublishError, RejectionReason, Toml, Yaml};
use docent::{Client, Config, CreateMode, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::soon;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Settings {
    name: String,
    ports: Vec<u16>,
    labels: BTreeMap<String, String>,
}

fn settings(name: &str) -> Settings {
    let labels = BTreeMap::from([("a.b".to_owned(), "\u{e4}: #".to_owned())]);
    Settings { name: name.to_owned(), ports: vec![80, 443], labels }
}

/// Publishes values with a codec, and writes `text`, whose name is `by hand`, and `bad`.
async fn check<C: Codec<Settings> + Clone>(
    client: &Client,
    codec: C,
    text: &'static str,
    bad: &'static str,
    fault: &str,
) {
    const PATH: &str = "/config/settings";
    let config = Config::builder_with(client, PATH, codec.clone()).build().unwrap();
    soon(config.publish(&settings("one"))).await.unwrap();
    let mut subscription = soon(config.subscribe()).await.unwrap();
    assert_eq!(**subscription.current(), settings("one"));
    client.set(PATH, text, None).await.unwrap();
    let Some(Ok(Change::Value(value))) = soon(subscription.changed()).await else { panic!() };
    assert_eq!(**value, settings("by hand"));
    client.set(PATH, bad, None).await.unwrap();
    let Some(Ok(Change::Refused(rejection))) = soon(subscription.changed()).await else { panic!() };
    assert_eq!(rejection.reason(), RejectionReason::Codec);
    assert_eq!(rejection.to_string(), format!("the value of version 2: {fault}"));
    assert_eq!(**subscription.current(), settings("by hand"));
    let Err(PublishError::Unreadable(_)) = soon(config.update(|now| now)).await else { panic!() };
    soon(config.publish(&settings("two"))).await.unwrap();
    let Some(Ok(Change::Value(value))) = soon(subscription.changed()).await else { panic!() };
    assert_eq!(**value, settings("two"));
    // The same codec in a folder, in which another folder is no key, and in a queue.
    let tree: ConfigTree<Settings> =
        Config::builder_with(client, "/config/tree", codec.clone()).build_tree().unwrap();
    soon(tree.key("eu/web").unwrap().publish(&settings("web"))).await.unwrap();
    client.create("/config/tree/bad", bad, CreateMode::Persistent).await.unwrap();
    let tree = soon(tree.subscribe()).await.unwrap();
    assert_eq!(
        tree.current().iter().map(|(key, value)| format!("{key}={}", value.name)).collect::<Vec<_>>(),
        ["eu/web=web"]
    );
    assert_eq!(tree.current().refused().map(|(key, _)| key.to_string()).collect::<Vec<_>>(), ["bad"]);
    let queue = Queue::builder_with(client, "/queue", codec).build().unwrap();
    soon(queue.put(&settings("item"))).await.unwrap();
    let delivery = soon(queue.take()).await.unwrap();
    assert_eq!(*delivery.item(), settings("item"));
    soon(delivery.ack()).await.unwrap();
}

both_backends! {
    async fn values_are_yaml(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let text = "# settings\nname: by hand\nports: [80, 443]\nlabels:\n  a.b: '\u{e4}: #'\n";
        let fault = "YAML does not fit the type at line 2 column 8";
        check(&client, Yaml, text, "name: x\nports: secret\n", fault).await;
    }

    async fn values_are_toml(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let text = "# settings\nname = 'by hand'\nports = [80, 443]\n[labels]\n\"a.b\" = \"\u{e4}: #\"\n";
        let fault = "TOML does not fit the type at line 2 column 9";
        check(&client, Toml, text, "name = 'x'\nports = \"secret\"\n", fault).await;
    }

    async fn values_are_properties(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let text = "# settings\nname = by hand\nports: 80, \\\n  443\nlabels[a.b] = \\u00e4: #";
        let fault = "key \"ports\" in line 2 must be an integer from 0 to 65535";
        check(&client, Properties, text, "name = x\nports = secret\n", fault).await;
    }
}
