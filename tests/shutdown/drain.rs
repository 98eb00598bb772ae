//! Instances that drain: heard of, or not.

use docent::ConnectionState;
use docent::discovery::{Instance, Registry};
use docent_battery::{Backend, both_backends};
use docent_tests::{PATIENCE, SESSION, builder, connect, soon, until};
use std::time::{Duration, Instant};

/// Longer than a test takes.
const LONG: Duration = PATIENCE.saturating_mul(10);

both_backends! {
    async fn a_shutdown_lets_an_instance_stand_disabled_for_its_period(backend: Backend) {
        let server = backend.start().await;
        let (client, other) = (connect(&server).await, connect(&server).await);
        let registry = Registry::builder(&client, "/services").drain(Duration::from_secs(1)).build().unwrap();
        let registration = soon(registry.register(Instance::new("orders", "h", 1).id("a"))).await.unwrap();
        let path = registration.path();
        let shutdown = tokio::spawn(client.shutdown(PATIENCE));
        until(async || {
            let node = other.get(&path).await.unwrap();
            String::from_utf8_lossy(&node.data).contains(r#""enabled":false"#)
        })
        .await;
        let report = soon(shutdown).await.unwrap();
        assert!(report.is_clean() && report.took >= Duration::from_secs(1), "{report}");
        other.sync(&path).await.unwrap();
        assert_eq!(other.exists(&path).await.unwrap(), None);
    }

    async fn a_drain_that_nobody_can_hear_of_is_not_waited_for(backend: Backend) {
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
        assert!(soon(one.drain(LONG)).await.is_err());
        assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}", began.elapsed());
        let report = soon(client.shutdown(Duration::from_secs(2))).await;
        assert!(report.took < Duration::from_secs(4), "{report}");
        assert!(report.left.iter().all(|node| node.kind == "registration"), "{report}");
        assert_eq!(report.left.len(), 2, "{report}");
    }
}
