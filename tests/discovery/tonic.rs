//! A gRPC channel balanced over a view, with real servers.

use crate::scene::{registry, until_ids};
use docent::Instance;
use docent::discovery::{AttemptPolicy, BalancedChannel as Channel, PickPolicy};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_tests::{PATIENCE, connect, soon};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::HealthReporter;

/// A health server that knows exactly one service.
struct Served {
    address: SocketAddr,
    reporter: HealthReporter,
    serving: JoinHandle<()>,
}

async fn health_server(name: &'static str) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (reporter, service) = tonic_health::server::health_reporter();
    reporter.set_service_status(name, ServingStatus::Serving).await;
    let serving = tokio::spawn(async move {
        Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener))
            .await
            .unwrap();
    });
    Served { address, reporter, serving }
}

fn at(id: &str, address: SocketAddr) -> Instance<String> {
    Instance::new("orders", address.ip().to_string(), address.port()).id(id).payload(id.to_owned())
}

/// Returns whether the answering server knows `name`, or `None` if no server answered.
async fn knows(channel: &Channel<String>, name: &str) -> Option<bool> {
    let request = HealthCheckRequest { service: name.to_owned() };
    match soon(HealthClient::new(channel.clone()).check(request)).await {
        Ok(_) => Some(true),
        Err(status) if status.code() == tonic::Code::NotFound => Some(false),
        Err(_) => None,
    }
}

/// Repeats the request until one server knows `name` and another does not.
async fn until_both(channel: &Channel<String>, name: &str) {
    let (mut yes, mut no) = (false, false);
    while !(yes && no) {
        match knows(channel, name).await {
            Some(true) => yes = true,
            Some(false) => no = true,
            None => {}
        }
    }
}

both_backends_in_real_time! {
    async fn a_channel_is_balanced_over_the_available_instances(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let view = crate::scene::view(&other).await;
        let channel = view.channel().attempt_policy(AttemptPolicy::default().wait(PATIENCE));
        // A request waits while there is no instance.
        let waiting = tokio::spawn({
            let channel = channel.clone();
            async move { knows(&channel, "a").await }
        });
        docent_tests::pause().await;
        let (a, b) = (health_server("a").await, health_server("b").await);
        let first = soon(registry(&client).register(at("1", a.address))).await.unwrap();
        assert_eq!(soon(waiting).await.unwrap(), Some(true));
        let _second = soon(registry(&client).register(at("2", b.address))).await.unwrap();
        soon(until_both(&channel, "a")).await;
        // One instance leaves, and its server stops.
        soon(first.deregister()).await.unwrap();
        until_ids(&view, &["2"]).await;
        a.serving.abort();
        soon(async { while knows(&channel, "b").await != Some(true) {} }).await;
        for _ in 0..20 {
            assert_eq!(knows(&channel, "b").await, Some(true));
        }
        // The channel works without ZooKeeper.
        soon(other.close()).await;
        assert_eq!(knows(&channel, "b").await, Some(true));
    }

    async fn the_callers_endpoint_function_may_skip_an_instance(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (a, b) = (health_server("a").await, health_server("b").await);
        let _bad = soon(registry(&client).register(at("0", a.address))).await.unwrap();
        let _first = soon(registry(&client).register(at("1", a.address))).await.unwrap();
        let _second = soon(registry(&client).register(at("2", b.address))).await.unwrap();
        let view = crate::scene::view(&other).await;
        let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let channel = view.channel_with(|instance| {
            assert_ne!(instance.id, "0", "planted");
            let uri = instance.uri().ok().filter(|_| instance.id == "2")?;
            Some(Endpoint::from_shared(uri).ok()?.connect_timeout(Duration::from_secs(5)))
        });
        for _ in 0..20 {
            assert_eq!(knows(&channel, "b").await, Some(true));
        }
        drop(channel);
        // Its own tasks have ended with it, except for the link that the server closes.
        soon(async { while tasks() > before + 1 { docent_tests::pause().await; } }).await;
    }

    async fn a_stream_counts_as_in_flight_and_outlives_its_instances_registration(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (a, b) = (health_server("a").await, health_server("a").await);
        let first = soon(registry(&client).register(at("1", a.address))).await.unwrap();
        let second = soon(registry(&client).register(at("2", b.address))).await.unwrap();
        let builder = registry(&other).service_builder::<String>("orders").policy(PickPolicy::PowerOfTwo);
        let view = soon(builder.open()).await.unwrap();
        let mut health = HealthClient::new(view.channel());
        let request = || HealthCheckRequest { service: "a".to_owned() };
        let mut stream = soon(health.watch(request())).await.unwrap().into_inner();
        assert_eq!(soon(stream.message()).await.unwrap().unwrap().status, 1);
        let picks = || (0..50).map(|_| view.pick().unwrap().id.clone()).collect::<BTreeSet<_>>();
        let free = picks();
        assert_eq!(free.len(), 1, "the other instance has the stream");
        let (removed, at, kept) = if free.contains("2") { (first, &a, "2") } else { (second, &b, "1") };
        soon(removed.deregister()).await.unwrap();
        until_ids(&view, &[kept]).await;
        soon(health.check(request())).await.unwrap();
        at.reporter.set_service_status("a", ServingStatus::NotServing).await;
        assert_eq!(soon(stream.message()).await.unwrap().unwrap().status, 2);
    }

    async fn the_end_of_a_stream_ends_its_time_in_flight(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let (a, b) = (health_server("a").await, health_server("a").await);
        let _first = soon(registry(&client).register(at("1", a.address))).await.unwrap();
        let _second = soon(registry(&client).register(at("2", b.address))).await.unwrap();
        let builder = registry(&other).service_builder::<String>("orders").policy(PickPolicy::PowerOfTwo);
        let view = soon(builder.open()).await.unwrap();
        let mut health = HealthClient::new(view.channel());
        let request = HealthCheckRequest { service: "a".to_owned() };
        let stream = soon(health.watch(request.clone())).await.unwrap();
        let picks = || (0..50).map(|_| view.pick().unwrap().id.clone()).collect::<BTreeSet<_>>();
        assert_eq!(picks().len(), 1);
        drop(stream);
        assert_eq!(picks().len(), 2);
        soon(health.check(request)).await.unwrap();
        assert_eq!(picks().len(), 2, "a unary call ends with its response");
    }
}
