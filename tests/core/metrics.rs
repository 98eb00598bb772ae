//! Counters and timers of the feature `metrics`.

use docent::{Client, ConnectionState, Election, LostReason, Mutex, RwLock, Semaphore};
use docent_proto::OpCode;
use docent_testkit::{Backend, Proxy, Rule, TestServer};
use docent_tests::{builder, soon};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use std::collections::BTreeMap;
use std::time::Duration;

/// Name, labels and value of each recorded metric, histograms by the number of their values.
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

/// Takes each and gives it back.
async fn every_recipe(client: &Client) {
    let rw_lock = RwLock::new(client, "/secret-path/w").unwrap();
    soon(soon(rw_lock.write()).await.unwrap().release()).await.unwrap();
    soon(soon(rw_lock.read()).await.unwrap().release()).await.unwrap();
    let semaphore = Semaphore::new(client, "/secret-path/s", 2).unwrap();
    soon(soon(semaphore.acquire_many(2)).await.unwrap().release()).await.unwrap();
    let election = Election::new(client, "/secret-path/e").unwrap();
    soon(soon(election.campaign()).await.unwrap().resign()).await.unwrap();
}

/// A link that breaks under a read and under a write, a refusal without a link, and a session that ends.
async fn trouble(server: &TestServer, proxy: &Proxy, client: &Client) {
    proxy.add(Rule::on(OpCode::GetData).reset_before());
    soon(client.get("/")).await.unwrap();
    proxy.add(Rule::on(OpCode::SetData).reset_after());
    assert!(soon(client.set("/", "", None)).await.unwrap_err().may_have_applied());
    proxy.cut().await;
    soon(client.state().reached(ConnectionState::Suspended)).await;
    let hurried = client.with_operation_timeout(Duration::from_millis(10));
    assert!(!soon(hurried.set("/", "", None)).await.unwrap_err().may_have_applied());
    proxy.heal().await.unwrap();
    let guard = soon(Mutex::new(client, "/secret-path").unwrap().acquire()).await.unwrap();
    server.expire(client.session_id().unwrap()).await.unwrap();
    assert_eq!(soon(guard.lost()).await, LostReason::SessionExpired);
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
            every_recipe(&client).await;
            trouble(&server, &proxy, &client).await;
            let guard = soon(mutex.acquire()).await.unwrap();
            proxy.blackhole();
            assert_eq!(soon(guard.lost()).await, LostReason::LeaseExpired);
            // Its node is deleted once the link is back.
            drop(guard);
            proxy.heal().await.unwrap();
            soon(async { while !mutex.participants().await.unwrap().is_empty() {} }).await;
            soon(client.close()).await;
        });
    });
    let recorded = recorded(&snapshotter);
    for (metric, value) in [
        ("docent_session_lost_total{}", "1"),
        ("docent_connection_state{}", "4"),
        ("docent_retries_total{op=get}", "1"),
        ("docent_op_duration_seconds{op=set,outcome=unknown}", "1"),
        ("docent_op_duration_seconds{op=set,outcome=failed}", "1"),
        ("docent_cleanups_open{}", "0"),
        ("docent_lock_wait_seconds{recipe=mutex}", "3"),
        ("docent_lock_held_seconds{recipe=mutex}", "3"),
        ("docent_lock_lost_total{recipe=mutex,reason=session_expired}", "1"),
        ("docent_locks_held{recipe=mutex}", "0"),
        ("docent_lock_lost_total{recipe=mutex,reason=lease_expired}", "1"),
        ("docent_op_duration_seconds{op=get,outcome=answered}", "5"),
    ] {
        assert_eq!(recorded.get(metric).map(String::as_str), Some(value), "{metric} in {recorded:#?}");
    }
    for (recipe, acquired) in
        [("rw_lock", "2"), ("semaphore", "2"), ("semaphore_turn", "1"), ("election", "1")]
    {
        for metric in ["docent_lock_wait_seconds", "docent_lock_held_seconds"] {
            let metric = format!("{metric}{{recipe={recipe}}}");
            assert_eq!(
                recorded.get(&metric).map(String::as_str),
                Some(acquired),
                "{metric} in {recorded:#?}"
            );
        }
        assert_eq!(recorded[&format!("docent_locks_held{{recipe={recipe}}}")], "0");
    }
    let count = |metric: &str| recorded[metric].parse::<u32>().unwrap();
    // After the start, a reset, an expiry and an outage; each but the first comes after a lost link.
    assert!(count("docent_connected_total{}") >= 4, "{recorded:#?}");
    assert!(count("docent_suspended_total{}") >= 2, "{recorded:#?}");
    assert!(count("docent_session_lateness_seconds{}") >= 1, "{recorded:#?}");
    assert!(!format!("{recorded:?}").contains("secret-path"));
}
