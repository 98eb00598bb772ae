//! A view as tower's `Discover`.

use crate::scene::{orders, registry, view};
use docent::Instance;
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{connect, soon};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tower::balance::p2c::Balance;
use tower::discover::Change;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};
use tower::{Service, ServiceExt};

/// Starts a server that answers every connection with its name.
async fn named_server(name: &'static str) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (mut link, _) = listener.accept().await.unwrap();
            link.write_all(name.as_bytes()).await.unwrap();
        }
    });
    (address, serving)
}

/// Asks an instance's server for its name.
fn dial(
    instance: &Arc<Instance<String>>,
) -> Option<impl Service<(), Response = String, Error = std::io::Error> + use<>> {
    let authority = instance.authority()?;
    Some(tower::service_fn(move |()| {
        let authority = authority.clone();
        async move {
            let mut name = String::new();
            TcpStream::connect(authority).await?.read_to_string(&mut name).await?;
            Ok(name)
        }
    }))
}

fn at(id: &str, address: SocketAddr) -> Instance<String> {
    Instance::new("orders", address.ip().to_string(), address.port()).id(id).payload(id.to_owned())
}

both_backends_in_real_time! {
    async fn towers_balance_spreads_requests_over_the_available_instances(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (a, b) = (named_server("a").await, named_server("b").await);
        let first = soon(registry(&client).register(at("1", a.0))).await.unwrap();
        let _second = soon(registry(&client).register(at("2", b.0))).await.unwrap();
        let view = view(&other).await;
        let discover = PendingRequestsDiscover::new(view.discover(dial), CompleteOnResponse::default());
        let mut balance = Balance::new(discover);
        let mut answers = BTreeMap::new();
        for _ in 0..60 {
            let name = soon(async { balance.ready().await.unwrap().call(()).await }).await.unwrap();
            *answers.entry(name).or_insert(0) += 1;
        }
        assert!(answers.len() == 2 && answers.values().all(|count| *count > 5), "{answers:?}");
        // One instance leaves, and its server stops. It receives no more requests.
        soon(first.deregister()).await.unwrap();
        crate::scene::until_ids(&view, &["2"]).await;
        a.1.abort();
        for _ in 0..20 {
            let name = soon(async { balance.ready().await.unwrap().call(()).await }).await.unwrap();
            assert_eq!(name, "b");
        }
    }

    async fn discover_reports_new_changed_and_removed_instances_and_ends_on_close(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let view = view(&other).await;
        // The closure skips instances with the payload `out`, and panics at one instance, which is skipped as
        // well.
        let mut discover = view.discover(|instance| {
            assert_ne!(instance.payload.as_deref(), Some("poison"), "planted");
            instance.payload.clone().filter(|payload| payload != "out")
        });
        let mut next = async || -> Option<String> {
            let change: Option<Result<_, Infallible>> = soon(discover.next()).await;
            change.map(|change| match change.unwrap() {
                Change::Insert(key, payload) => format!("insert {key} {payload}"),
                Change::Remove(key) => format!("remove {key}"),
            })
        };
        let one = soon(registry(&client).register(orders("1"))).await.unwrap();
        assert_eq!(next().await.as_deref(), Some("insert 1 1"));
        soon(one.update(orders("1").payload("new".to_owned()))).await.unwrap();
        assert_eq!(next().await.as_deref(), Some("insert 1 new"));
        soon(one.update(orders("1").payload("out".to_owned()))).await.unwrap();
        assert_eq!(next().await.as_deref(), Some("remove 1"));
        let _bad = soon(registry(&client).register(orders("bad").payload("poison".to_owned()))).await.unwrap();
        crate::scene::until_ids(&view, &["1", "bad"]).await;
        let two = soon(registry(&client).register(orders("2"))).await.unwrap();
        assert_eq!(next().await.as_deref(), Some("insert 2 2"));
        soon(two.deregister()).await.unwrap();
        assert_eq!(next().await.as_deref(), Some("remove 2"));
        soon(other.close()).await;
        assert_eq!(next().await, None);
    }

    async fn towers_balance_keeps_its_instances_when_the_client_is_closed(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let a = named_server("a").await;
        let _one = soon(registry(&client).register(at("1", a.0))).await.unwrap();
        let view = view(&other).await;
        let discover = PendingRequestsDiscover::new(view.discover(dial), CompleteOnResponse::default());
        let mut balance = Balance::new(discover);
        assert_eq!(soon(async { balance.ready().await.unwrap().call(()).await }).await.unwrap(), "a");
        let mut changes = view.changes();
        soon(other.close()).await;
        while soon(changes.next()).await.is_some() {}
        assert!(soon(changes.next()).await.is_none(), "an ended stream stays ended");
        for _ in 0..3 {
            assert_eq!(soon(async { balance.ready().await.unwrap().call(()).await }).await.unwrap(), "a");
        }
    }
}
