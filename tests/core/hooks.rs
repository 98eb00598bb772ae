//! User code that the client calls: the function of `acl_for`, and the recorder of metrics.

use docent::discovery::RegistrationStatus;
use docent::node::Acl;
use docent::{CreateMode, ErrorKind, Instance, Membership, Registry};
use docent_battery::{Backend, both_backends};
use docent_tests::{builder, connect, soon, until};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

both_backends! {
    async fn a_node_whose_access_control_list_cannot_be_chosen_is_not_created(backend: Backend) {
        let server = backend.start().await;
        let choose = |path: &str| {
            assert!(!path.contains("poison"), "planted");
            None
        };
        let client = builder(&server, server.connect_string()).acl_for(choose).connect().await.unwrap();
        let refused = |kind| assert_eq!(kind, ErrorKind::InvalidAcl);
        refused(soon(client.create("/poison", "", CreateMode::Persistent)).await.unwrap_err().kind());
        assert!(client.exists("/poison").await.unwrap().is_none());
        let group = Membership::new(&client, "/group").unwrap();
        refused(soon(group.join("poison", "")).await.unwrap_err().kind());
        let _member = soon(group.join("good", "")).await.unwrap();
        soon(soon(docent::Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap().release()).await.unwrap();
    }

    async fn a_registration_outlives_a_panic_of_the_function_that_chooses_lists(backend: Backend) {
        let server = backend.start().await;
        let panics = Arc::new(AtomicBool::new(false));
        let choose = {
            let panics = Arc::clone(&panics);
            move |path: &str| {
                assert!(!path.ends_with("/1") || !panics.load(Ordering::SeqCst), "planted");
                Some(vec![Acl::open_unsafe()])
            }
        };
        let settings = builder(&server, server.connect_string()).acl_for(choose);
        let (client, other) = (settings.connect().await.unwrap(), connect(&server).await);
        let instance = Instance::<()>::new("orders", "10.0.0.7", 80).id("1");
        let mut one = soon(Registry::new(&client, "/services").unwrap().register(instance)).await.unwrap();
        panics.store(true, Ordering::SeqCst);
        other.delete(&one.path(), None).await.unwrap();
        let mut status = one.status();
        while !matches!(status, RegistrationStatus::Failing(_)) {
            status = soon(one.changed()).await.unwrap();
        }
        panics.store(false, Ordering::SeqCst);
        while !matches!(status, RegistrationStatus::Announced) {
            status = soon(one.changed()).await.unwrap();
        }
        assert!(other.exists(&one.path()).await.unwrap().is_some());
    }
}

/// A recorder that panics on every call once it is enabled.
#[derive(Debug, Default)]
struct Panics(AtomicBool);

impl Panics {
    fn called(&self) {
        assert!(!self.0.load(Ordering::SeqCst), "planted");
    }
}

impl Recorder for Panics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        self.called();
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        self.called();
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        self.called();
        Histogram::noop()
    }
}

#[test]
fn a_metrics_recorder_that_panics_breaks_nothing() {
    let recorder = Panics::default();
    metrics::with_local_recorder(&recorder, || {
        // The recorder is local to this thread.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Backend::Embedded.start().await;
            let client = connect(&server).await;
            let guard = soon(docent::Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap();
            recorder.0.store(true, Ordering::SeqCst);
            server.expire(client.session_id().unwrap()).await.unwrap();
            soon(guard.lost()).await;
            drop(guard);
            until(async || client.get("/").await.is_ok()).await;
            soon(soon(docent::Mutex::new(&client, "/lock").unwrap().acquire()).await.unwrap().release())
                .await
                .unwrap();
            soon(client.close()).await;
        });
    });
}
