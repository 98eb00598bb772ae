//! Counters and timers of the feature `metrics`.

use docent::locks::{SharedMutex, TimedLease};
use docent::queue::PutOptions;
use docent::{
    Client, Config, ConnectionState, Election, Instance, LostReason, Mutex, Queue, Registry, RwLock,
    Semaphore,
};
use docent_battery::{Backend, Proxy, Rule, TestServer};
use docent_proto::OpCode;
use docent_tests::{builder, soon};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use std::collections::BTreeMap;
use std::time::Duration;

/// Returns the name, labels and value of each recorded metric. A histogram's value is the number of its
/// samples.
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

/// Acquires each recipe once and releases it.
async fn every_recipe(client: &Client) {
    let rw_lock = RwLock::new(client, "/secret-path/w").unwrap();
    soon(soon(rw_lock.write()).await.unwrap().release()).await.unwrap();
    soon(soon(rw_lock.read()).await.unwrap().release()).await.unwrap();
    let semaphore = Semaphore::new(client, "/secret-path/s", 2).unwrap();
    soon(soon(semaphore.acquire_many(2)).await.unwrap().release()).await.unwrap();
    let election = Election::new(client, "/secret-path/e").unwrap();
    soon(soon(election.campaign()).await.unwrap().resign()).await.unwrap();
}

/// Breaks the link during a read and during a write, refuses a request without a link, and ends a session.
async fn cause_failures(server: &TestServer, proxy: &Proxy, client: &Client) {
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
fn states_operations_waits_and_losses_are_counted_without_path_labels() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut started = BTreeMap::new();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Backend::Embedded.start().await;
            let proxy = server.proxy().await;
            let client: Client = builder(&server, proxy.connect_string()).label("one").build().unwrap();
            started = recorded(&snapshotter);
            soon(client.state().reached(ConnectionState::Connected)).await;
            let mutex = Mutex::new(&client, "/secret-path").unwrap();
            soon(soon(mutex.acquire()).await.unwrap().release()).await.unwrap();
            assert!(soon(client.get("/secret-path/none")).await.is_err());
            every_recipe(&client).await;
            cause_failures(&server, &proxy, &client).await;
            let guard = soon(mutex.acquire()).await.unwrap();
            proxy.blackhole();
            assert_eq!(soon(guard.lost()).await, LostReason::LeaseExpired);
            // The guard's node is deleted when the link is back.
            drop(guard);
            proxy.heal().await.unwrap();
            soon(async { while !mutex.participants().await.unwrap().is_empty() {} }).await;
            soon(client.close()).await;
        });
    });
    let recorded = recorded(&snapshotter);
    for (metric, value) in [
        ("docent_session_lost_total{client=one,reason=expired}", "1"),
        ("docent_connection_state{client=one}", "4"),
        ("docent_retries_total{client=one,op=get}", "1"),
        ("docent_op_duration_seconds{client=one,op=set,outcome=unknown}", "1"),
        ("docent_op_duration_seconds{client=one,op=set,outcome=failed}", "1"),
        ("docent_cleanups_open{client=one}", "0"),
        ("docent_lock_wait_seconds{client=one,recipe=mutex}", "3"),
        ("docent_lock_held_seconds{client=one,recipe=mutex}", "3"),
        ("docent_lock_lost_total{client=one,recipe=mutex,reason=session_expired}", "1"),
        ("docent_locks_held{client=one,recipe=mutex}", "0"),
        ("docent_lock_lost_total{client=one,recipe=mutex,reason=lease_expired}", "1"),
        ("docent_op_duration_seconds{client=one,op=get,outcome=answered}", "5"),
    ] {
        assert_eq!(recorded.get(metric).map(String::as_str), Some(value), "{metric} in {recorded:#?}");
    }
    for (recipe, acquired) in
        [("rw_lock", "2"), ("semaphore", "2"), ("semaphore_turn", "1"), ("election", "1")]
    {
        for metric in ["docent_lock_wait_seconds", "docent_lock_held_seconds"] {
            let metric = format!("{metric}{{client=one,recipe={recipe}}}");
            assert_eq!(
                recorded.get(&metric).map(String::as_str),
                Some(acquired),
                "{metric} in {recorded:#?}"
            );
        }
        assert_eq!(recorded[&format!("docent_locks_held{{client=one,recipe={recipe}}}")], "0");
    }
    // The series of a recipe start with its first handle.
    let of_recipe = ["recipe=", "op=acquire}", "op=campaign}"];
    let is_late = |metric: &&String| {
        !started.contains_key(*metric) && !of_recipe.iter().any(|label| metric.contains(label))
    };
    let late: Vec<_> = recorded.keys().filter(is_late).collect();
    assert!(late.is_empty(), "not present from the start: {late:?}");
    let count = |metric: &str| recorded[metric].parse::<u32>().unwrap();
    // The causes are the start, a reset, an expiry and an outage. Each but the start follows a lost link.
    assert!(count("docent_connected_total{client=one}") >= 4, "{recorded:#?}");
    assert!(count("docent_suspended_total{client=one}") >= 2, "{recorded:#?}");
    assert!(count("docent_session_lateness_seconds{client=one}") >= 1, "{recorded:#?}");
    assert!(!format!("{recorded:?}").contains("secret-path"));
}

/// Folders of `one_of_each`.
const FOLDERS: [&str; 5] = ["/mutex", "/rw-lock", "/election", "/lease", "/queue"];

/// Calls the methods of recipes that send their own requests. A method may fail if a broken link leaves its
/// outcome unknown.
async fn one_of_each(client: &Client) {
    let [mutex, rw_lock, election, lease, queue] = FOLDERS;
    let guard = Mutex::new(client, mutex).unwrap().acquire().await.unwrap();
    guard.verify().await.unwrap();
    guard.release().await.unwrap();
    let guard = RwLock::new(client, rw_lock).unwrap().write().await.unwrap();
    guard.downgrade().await.unwrap().release().await.unwrap();
    Election::new(client, election).unwrap().campaign().await.unwrap().resign().await.unwrap();
    let _ = TimedLease::new(client, lease, Duration::from_secs(60)).unwrap().try_obtain().await;
    let queue = Queue::<u64>::new(client, queue).unwrap();
    let _ = queue.take().await.unwrap().ack().await;
    let _ = queue.take().await.unwrap().put_back(PutOptions::default()).await;
    let first = queue.list().await.unwrap().swap_remove(0);
    let _ = queue.reschedule(&first.name, PutOptions::default()).await;
    queue.take().await.unwrap().nack_now().await.unwrap();
}

#[test]
fn retries_of_recipes_are_counted_from_zero() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut before = BTreeMap::new();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Backend::Embedded.start().await;
            let proxy = server.proxy().await;
            let client = builder(&server, proxy.connect_string()).label("one").connect().await.unwrap();
            let queue = Queue::<u64>::new(&client, "/queue").unwrap();
            soon(queue.put_all(&[0; 20])).await.unwrap();
            soon(one_of_each(&client)).await;
            before = recorded(&snapshotter);
            for nth in 1..=3 {
                for folder in FOLDERS {
                    let rule = Rule::on_any().path(move |path| path.contains(folder)).nth(nth);
                    proxy.add(rule.reset_before());
                }
                soon(one_of_each(&client)).await;
            }
            soon(client.close()).await;
        });
    });
    let after = recorded(&snapshotter);
    let late: Vec<_> = after.keys().filter(|metric| !before.contains_key(*metric)).collect();
    assert!(late.is_empty(), "these series started only with the first event that they count: {late:?}");
    let retries = |operation: &str| format!("docent_retries_total{{client=one,op={operation}}}");
    for operation in [
        "acquire",
        "campaign",
        "obtain",
        "take",
        "ack",
        "give back",
        "put back",
        "reschedule",
        "verify",
        "downgrade",
    ] {
        assert!(before.contains_key(&retries(operation)), "{operation} in {before:#?}");
    }
    for operation in ["acquire", "campaign", "obtain", "take"] {
        let count: u32 = after[&retries(operation)].parse().unwrap();
        assert!(count > 0, "{operation} in {after:#?}");
    }
}

#[test]
fn each_turn_with_a_shared_ticket_is_counted_as_a_guard() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Backend::Embedded.start().await;
            let client = builder(&server, server.connect_string()).label("one").connect().await.unwrap();
            let mutex = SharedMutex::builder(&client, "/secret-path").limit(9).build().unwrap();
            let mut second = Box::pin(mutex.acquire());
            let (first, ()) = tokio::join!(mutex.acquire(), async {
                assert!(futures_util::poll!(second.as_mut()).is_pending());
            });
            let first = first.unwrap();
            drop(first);
            let second = soon(second).await.unwrap();
            server.expire(client.session_id().unwrap()).await.unwrap();
            assert_eq!(soon(second.lost()).await, LostReason::SessionExpired);
            drop(second);
            soon(client.close()).await;
        });
    });
    let recorded = recorded(&snapshotter);
    for (metric, value) in [
        ("docent_lock_wait_seconds{client=one,recipe=mutex}", "2"),
        ("docent_lock_held_seconds{client=one,recipe=mutex}", "2"),
        ("docent_lock_passed_on_total{client=one,recipe=mutex}", "1"),
        ("docent_lock_lost_total{client=one,recipe=mutex,reason=session_expired}", "1"),
        ("docent_locks_held{client=one,recipe=mutex}", "0"),
    ] {
        assert_eq!(recorded.get(metric).map(String::as_str), Some(value), "{metric} in {recorded:#?}");
    }
}

#[test]
fn queues_configurations_and_services_export_gauges_under_their_names() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut running = BTreeMap::new();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Backend::Embedded.start().await;
            // The recorder belongs to one thread.
            let builder = builder(&server, server.connect_string()).label("one").inline_hooks();
            let client: Client = builder.connect().await.unwrap();
            let jobs = Queue::<u64>::builder(&client, "/secret-path/q").metrics_name("jobs").build().unwrap();
            soon(jobs.put_all(&[1, 2, 3])).await.unwrap();
            let first = soon(jobs.take()).await.unwrap();
            let limits =
                Config::<u64>::builder(&client, "/secret-path/c").metrics_name("limits").build().unwrap();
            for value in 1..=3 {
                soon(limits.publish(&value)).await.unwrap();
            }
            let seen = soon(limits.subscribe()).await.unwrap();
            assert_eq!(**seen.current(), 3);
            let registry = Registry::new(&client, "/secret-path/r").unwrap();
            let mut registrations = Vec::new();
            for port in [1, 2] {
                let instance = Instance::new("web", "10.0.0.1", port);
                registrations.push(soon(registry.register(instance)).await.unwrap());
            }
            let view = soon(registry.service("web")).await.unwrap();
            soon(async {
                while view.instances().iter().count() < 2 {
                    docent_tests::pause().await;
                }
            })
            .await;
            soon(first.ack()).await.unwrap();
            let election = Election::builder(&client, "/secret-path/l").metrics_name("scheduler").build();
            let _leadership = soon(election.unwrap().campaign()).await.unwrap();
            running = recorded(&snapshotter);
            soon(client.close()).await;
        });
    });
    let ended = recorded(&snapshotter);
    assert_eq!(ended["docent_leader{client=one,election=scheduler}"], "0");
    // A snapshot resets the values, so this is the change since the previous snapshot.
    assert_eq!(ended["docent_kept_nodes_present{client=one}"], "-2");
    let recorded = running;
    for (metric, value) in [
        ("docent_queue_depth{client=one,queue=jobs}", "3"),
        ("docent_config_version{client=one,config=limits}", "2"),
        ("docent_config_stale{client=one,config=limits}", "0"),
        ("docent_service_instances{client=one,service=web}", "2"),
        ("docent_registrations{client=one,service=web}", "2"),
        ("docent_leader{client=one,election=scheduler}", "1"),
        ("docent_kept_nodes_wanted{client=one}", "2"),
        ("docent_kept_nodes_present{client=one}", "2"),
    ] {
        assert_eq!(recorded.get(metric).map(String::as_str), Some(value), "{metric} in {recorded:#?}");
    }
    let age: f64 = recorded["docent_queue_head_age_seconds{client=one,queue=jobs}"].parse().unwrap();
    assert!((0.0..60.0).contains(&age), "{age}");
    assert!(!recorded.keys().any(|metric| metric.contains("secret-path")), "{recorded:#?}");
}
