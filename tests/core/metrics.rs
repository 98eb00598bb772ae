//! What the feature `metrics` counts and times.

use docent::{Client, LostReason, Mutex};
use docent_testkit::Backend;
use docent_tests::{builder, soon};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use std::collections::BTreeMap;

/// Name, labels and value of what was recorded, histograms by the number of their values.
fn recorded(snapshotter: &Snapshotter) -> BTreeMap<String, String> {
    let metrics = snapshotter.snapshot().into_vec().into_iter();
    let named = metrics.map(|(key, _, _, value)| {
        let labels: Vec<_> =
            key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let value = match value {
            DebugValue::Counter(count) => count.to_string(),
            DebugValue::Gauge(value) => value.to_string(),
            DebugValue::Histogram(values) => values.len().to_string(),
        };
        (format!("{}{{{}}}", key.key().name(), labels.join(",")), value)
    });
    named.collect()
}

#[test]
fn states_operations_waits_and_losses_are_counted_and_paths_are_no_labels() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Backend::Embedded.start().await;
            let proxy = server.proxy().await;
            let client: Client = builder(&server, proxy.connect_string()).connect().await.unwrap();
            let mutex = Mutex::new(&client, "/secret-path").unwrap();
            soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
            assert!(soon(client.get("/secret-path/none")).await.is_err());
            let guard = soon(mutex.acquire()).await.unwrap();
            proxy.blackhole();
            assert_eq!(soon(guard.lost()).await, LostReason::LeaseExpired);
        });
    });
    let recorded = recorded(&snapshotter);
    for (metric, value) in [
        ("docent_connected_total{}", "1"),
        ("docent_lock_wait_seconds{recipe=mutex}", "2"),
        ("docent_lock_held_seconds{recipe=mutex}", "2"),
        ("docent_locks_held{recipe=mutex}", "0"),
        ("docent_lock_lost_total{recipe=mutex,reason=lease_expired}", "1"),
        ("docent_op_duration_seconds{op=get,outcome=answered}", "1"),
    ] {
        assert_eq!(recorded.get(metric).map(String::as_str), Some(value), "{metric} in {recorded:#?}");
    }
    assert!(recorded.contains_key("docent_connection_state{}"));
    assert!(!format!("{recorded:?}").contains("secret-path"));
}
