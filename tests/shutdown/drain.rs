//! Instances that drain, with and without clients that can learn of the drain.

use docent::client::ShutdownReport;
use docent::discovery::{Instance, RegistrationStatus, Registry};
use docent::node::{Acl, Permissions};
use docent::{Client, ConnectionState, CreateMode, ErrorKind, Released};
use docent_battery::{Backend, Rule, both_backends};
use docent_proto::OpCode;
use docent_tests::{PATIENCE, SESSION, builder, connect, soon, until};
use std::time::Duration;
use tokio::time::Instant;

/// Longer than a test takes.
const LONG: Duration = PATIENCE.saturating_mul(10);

const ORDER: &str = "/services/orders/a";

fn order() -> Instance {
    Instance::new("orders", "h", 1).id("a")
}

fn draining(client: &Client, period: Duration) -> Registry {
    Registry::builder(client, "/services").drain(period).build().unwrap()
}

/// Shuts down a client whose drain no other client can learn of, and checks that it does not use its whole
/// time.
async fn ends_at_once(client: &Client) -> ShutdownReport {
    let report = soon(client.shutdown(PATIENCE / 2)).await;
    assert!(report.took < PATIENCE / 6, "{report}");
    report
}

/// Waits until the node of the order is disabled.
async fn until_disabled(other: &Client) {
    until(async || {
        let node = other.get(ORDER).await.unwrap();
        String::from_utf8_lossy(&node.data).contains(r#""enabled":false"#)
    })
    .await;
}

both_backends! {
    async fn a_shutdown_keeps_an_instance_disabled_for_its_drain_period(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registry = Registry::builder(&client, "/services").drain(Duration::from_secs(1)).build().unwrap();
        let registration = soon(registry.register(Instance::new("orders", "h", 1).id("a"))).await.unwrap();
        let path = registration.path();
        let shutdown = tokio::spawn(client.shutdown(PATIENCE));
        until_disabled(&other).await;
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean() && report.took >= Duration::from_secs(1), "{report}");
        other.sync(&path).await.unwrap();
        assert_eq!(other.exists(&path).await.unwrap(), None);
    }

    async fn a_drain_that_cannot_be_published_is_not_waited_for(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string())
            .operation_timeout(Duration::from_secs(1))
            .session_timeout(SESSION)
            .connect()
            .await
            .unwrap();
        let registry = Registry::builder(&client, "/services").drain(LONG).build().unwrap();
        let one = soon(registry.register(Instance::new("orders", "h", 1).id("a"))).await.unwrap();
        let _two = soon(registry.register(Instance::new("orders", "h", 1).id("b"))).await.unwrap();
        proxy.cut().await;
        client.state().reached(ConnectionState::Suspended).await;
        let began = Instant::now();
        assert_eq!(soon(one.drain(LONG)).await.unwrap(), Released::Pending);
        assert!(began.elapsed() < Duration::from_secs(5), "the drain took {:?}", began.elapsed());
        let report = soon(client.shutdown(Duration::from_secs(2))).await;
        assert!(report.took < Duration::from_secs(4), "{report}");
        assert!(report.left.iter().all(|node| node.kind == "registration"), "{report}");
        assert_eq!(report.left.len(), 2, "{report}");
    }

    async fn an_instance_whose_path_another_client_owns_is_not_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        soon(other.create(ORDER, "theirs", CreateMode::Ephemeral)).await.unwrap();
        let registration = draining(&client, LONG).announce(order()).unwrap();
        until(async || matches!(registration.status(), RegistrationStatus::Occupied { .. })).await;
        assert!(ends_at_once(&client).await.is_clean());
        assert_eq!(soon(other.get(ORDER)).await.unwrap().data, "theirs");
    }

    async fn an_instance_that_the_servers_refuse_is_not_waited_for(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        soon(other.create("/services/orders", "", CreateMode::Persistent)).await.unwrap();
        let read_only = Acl::new(Permissions::READ | Permissions::ADMIN, "world", "anyone");
        soon(other.set_acl("/services/orders", [read_only], None)).await.unwrap();
        let registration = draining(&client, LONG).announce(order()).unwrap();
        until(async || matches!(registration.status(), RegistrationStatus::Failing(_))).await;
        assert!(ends_at_once(&client).await.is_clean());
        let open = Acl::new(Permissions::ALL, "world", "anyone");
        soon(other.set_acl("/services/orders", [open], None)).await.unwrap();
    }

    async fn an_instance_that_is_disabled_while_it_drains_gets_its_period_and_no_more(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let client = builder(&server, proxy.connect_string()).connect().await.unwrap();
        let period = Duration::from_secs(1);
        let registration = soon(draining(&client, period).register(order())).await.unwrap();
        let last_words = proxy.add(Rule::on(OpCode::Multi).path(|path| path.ends_with(ORDER)).hold());
        let shutdown = tokio::spawn(client.shutdown(PATIENCE / 2));
        soon(last_words.fired()).await;
        let disabling = tokio::spawn(async move { registration.set_enabled(false).await });
        docent_tests::pause().await;
        proxy.heal().await.unwrap();
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean() && (period..PATIENCE / 6).contains(&report.took), "{report}");
        soon(disabling).await.unwrap().unwrap();
    }

    async fn an_update_during_a_drain_fails(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registration = soon(draining(&client, Duration::from_secs(1)).register(order())).await.unwrap();
        let shutdown = tokio::spawn(client.shutdown(PATIENCE));
        until_disabled(&other).await;
        let error = soon(registration.update(Instance::new("orders", "h", 2).id("a"))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        assert!(soon(shutdown).await.unwrap().is_clean());
    }
}
