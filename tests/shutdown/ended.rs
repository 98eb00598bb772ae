//! Every stream and handle that reports changes ends with the client, and does not make its reader spin.

use docent::cache::{ChildrenCache, NodeCache, TreeCache};
use docent::config::{Config, ConfigTree, SharedCount, SharedValue};
use docent::discovery::{Instance, Membership, Registry, Service};
use docent::locks::Partitioner;
use docent::recipe::KeptNode;
use docent::{Client, ConnectionState, CreateMode, Election, Queue};
use docent_battery::{Backend, both_backends};
use docent_tests::{PATIENCE, connect, soon};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use std::sync::Arc;
use tokio::sync::Mutex;

/// Maximum number of items that report the end itself and unread earlier changes.
const MOST: usize = 5;

/// A handle or stream that reports changes, with its name. Each call waits for the next change, and returns
/// false if there is none.
type Source = (&'static str, Box<dyn FnMut() -> BoxFuture<'static, bool> + Send>);

/// A source that calls the method `changed` of a handle.
macro_rules! changed {
    ($name:literal, $handle:expr) => {{
        let handle = Arc::new(Mutex::new($handle));
        let changed_once = move || {
            let handle = Arc::clone(&handle);
            async move {
                #[allow(unused_mut, reason = "some handles require `mut`")]
                let mut handle = handle.lock().await;
                handle.changed().await.is_some()
            }
            .boxed()
        };
        let source: Source = ($name, Box::new(changed_once));
        source
    }};
}

fn stream<S: Stream + Send + 'static>(name: &'static str, stream: S) -> Source
where
    S::Item: Send,
{
    let stream = Arc::new(Mutex::new(Box::pin(stream)));
    let changed_once = move || {
        let stream = Arc::clone(&stream);
        async move { stream.lock().await.next().await.is_some() }.boxed()
    };
    (name, Box::new(changed_once))
}

/// Returns the handles of the core crate that report changes.
async fn of_core(client: &Client) -> Vec<Source> {
    client.create("/node/child", "data", CreateMode::Persistent).await.unwrap();
    let kept = KeptNode::new(client, "/kept", "data").unwrap();
    soon(kept.present()).await.unwrap();
    let (node, children) =
        (NodeCache::new(client, "/node").unwrap(), ChildrenCache::new(client, "/node").unwrap());
    let tree = TreeCache::new(client, "/node").unwrap();
    vec![
        changed!("state", client.state()),
        stream("states", client.state()),
        changed!("kept node", kept),
        stream("watch of data", client.watch_data("/node").unwrap()),
        stream("watch of children", client.watch_children("/node").unwrap()),
        stream("watch of existence", client.watch_exists("/none").unwrap()),
        stream("cache of a node", node.changes()),
        stream("cache of children", children.changes()),
        stream("cache of a tree", tree.changes()),
    ]
}

/// Returns the handles of recipes that report changes.
async fn of_recipes(client: &Client) -> Vec<Source> {
    let registry = Registry::new(client, "/services").unwrap();
    let view: Service<()> = soon(registry.service("orders")).await.unwrap();
    let membership = Membership::new(client, "/members").unwrap();
    let members = soon(membership.members()).await.unwrap();
    let config = Config::<String>::new(client, "/config").unwrap();
    soon(config.publish(&"value".to_owned())).await.unwrap();
    let tree = ConfigTree::<String>::new(client, "/tree").unwrap();
    let value = SharedValue::new(client, "/value", "first").unwrap();
    let count = SharedCount::new(client, "/count", 0).unwrap();
    let partitioner = Partitioner::new(client, "/shards", ["a"]).unwrap();
    let share = soon(partitioner.acquire()).await.unwrap();
    let subscription = soon(config.subscribe()).await.unwrap();
    let of_tree = soon(tree.subscribe()).await.unwrap();
    vec![
        changed!("registration", soon(registry.register(Instance::new("orders", "h", 1))).await.unwrap()),
        changed!("static registration", {
            let instance =
                Instance::new("orders", "h", 1).service_type(docent::discovery::ServiceType::Static);
            soon(registry.register(instance)).await.unwrap()
        }),
        stream("service", view.changes()),
        stream("names of services", registry.watch_names().unwrap()),
        changed!("member", soon(membership.join("a", "")).await.unwrap()),
        stream("members", members.changes()),
        stream("leaders", Election::new(client, "/election").unwrap().observe()),
        stream("deliveries", Queue::<String>::new(client, "/jobs").unwrap().deliveries()),
        stream("subscription as a stream", subscription.clone()),
        changed!("subscription", subscription),
        changed!("subscription to a tree", of_tree),
        changed!("shared value", soon(value.subscribe()).await.unwrap()),
        changed!("shared count", soon(count.subscribe()).await.unwrap()),
        changed!("share", share),
    ]
}

/// Reads all of them until they end, and then once more.
async fn end(sources: Vec<Source>) {
    for (name, mut changed_once) in sources {
        let mut events = 0;
        while soon(changed_once()).await {
            events += 1;
            assert!(events <= MOST, "{name} does not end");
        }
        for _ in 0..3 {
            assert!(!soon(changed_once()).await, "{name} continues after its end");
        }
    }
}

both_backends! {
    async fn every_source_of_changes_ends_with_a_close(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let sources = (of_core(&client).await, of_recipes(&client).await);
        soon(client.close()).await;
        end(sources.0).await;
        end(sources.1).await;
        // A handle created later reports the end once, and no condition is ever met.
        let mut late = client.state();
        assert!(soon(late.changed()).await.is_some() && soon(late.changed()).await.is_none());
        assert_eq!(soon(late.reached(ConnectionState::Connected)).await, None);
        assert_eq!(soon(late.wait_for(|connection| connection.generation > 1)).await, None);
        assert!(soon(client.state().reached(ConnectionState::Closed)).await.is_some());
    }

    async fn every_source_of_changes_ends_with_a_shutdown(backend: Backend) {
        let server = backend.start().await;
        let client = connect(&server).await;
        let sources = (of_core(&client).await, of_recipes(&client).await);
        soon(client.shutdown(PATIENCE / 10)).await;
        end(sources.0).await;
        end(sources.1).await;
    }
}
