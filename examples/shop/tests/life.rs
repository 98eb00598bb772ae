//! The life of one copy: it starts before the servers, reports its state, and stops in time.

use crate::scene::{Scene, get, readiness, send, soon, until};
use docent::Mutex;
use docent_battery::{Backend, both_backends_in_real_time};
use docent_shop::fleet::Fleet;
use docent_shop::policy::{self, Policy};
use docent_shop::stock::Stock;
use docent_shop::traffic::order;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Maximum time from SIGTERM to the end of the process.
const DEADLINE: Duration = Duration::from_secs(10);

async fn alone(scene: &Scene) -> Fleet {
    let launch = scene.launch();
    Stock::open(&launch.database()).unwrap();
    let mut fleet = Fleet::new(launch);
    soon(fleet.open("a")).await.unwrap();
    fleet
}

async fn until_announced(fleet: &Fleet) {
    let copy = fleet.copy("a").unwrap();
    until(async || readiness(copy).await["registration"] == "announced").await;
}

/// Returns the state of a process as Linux reports it: `T` while it is stopped; `None` once it has exited.
fn state_of(process: i32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The state follows the program's name, which is in parentheses.
    stat.rsplit(") ").next()?.split(' ').next().map(str::to_owned)
}

/// Returns the state of the connection, as a copy reports it.
fn state(readiness: &Value) -> &Value {
    &readiness["servers"]["connection"]["state"]
}

both_backends_in_real_time! {
    async fn a_copy_starts_before_its_servers_do(backend: Backend) {
        let scene = Scene::set(backend).await;
        scene.server.stop().await;
        let mut fleet = alone(&scene).await;
        let copy = fleet.copy("a").unwrap();
        assert_eq!(get(copy, "/livez").await.0, 200);
        assert_eq!(get(copy, "/stock/tea").await.0, 200, "requests that need no coordination are served");
        let before = readiness(copy).await;
        assert_eq!((state(&before), &before["registration"]), (&"connecting".into(), &"pending".into()));
        scene.server.start_again().await;
        until_announced(&fleet).await;
        assert_eq!(soon(fleet.stop("a")).await.unwrap(), "a has stopped, leaving nothing");
    }

    async fn a_copy_reports_its_state_in_json_and_in_metrics(backend: Backend) {
        let scene = Scene::set(backend).await;
        let fleet = alone(&scene).await;
        until_announced(&fleet).await;
        let copy = fleet.copy("a").unwrap();
        until(async || readiness(copy).await["leads"] == true).await;
        let now = readiness(copy).await;
        assert_eq!((&now["ready"], state(&now)), (&true.into(), &"connected".into()), "{now}");
        let metrics = get(copy, "/metrics").await.1;
        for name in ["docent_connection_state", "docent_lock_wait_seconds_bucket", "docent_locks_held"] {
            assert!(metrics.contains(name), "{name} is missing in:\n{metrics}");
        }
    }

    async fn a_shutdown_during_an_outage_ends_in_time_and_lists_remaining_nodes(backend: Backend) {
        // Long enough that the process does not end because its session expires.
        let scene = Scene::with_sessions(backend, DEADLINE * 3).await;
        let mut fleet = alone(&scene).await;
        until_announced(&fleet).await;
        until(async || readiness(fleet.copy("a").unwrap()).await["leads"] == true).await;
        scene.server.stop().await;
        until(async || state(&readiness(fleet.copy("a").unwrap()).await) == "suspended").await;
        let start = Instant::now();
        let output = soon(fleet.stop("a")).await.unwrap();
        assert!(start.elapsed() < DEADLINE, "it took {:?}:\n{}", start.elapsed(), scene.log("a"));
        assert!(output.contains("/services/shop/a") && output.contains("/election/restock"), "{output}");
    }

    async fn a_stopped_copy_ends_with_a_launcher_that_is_killed(backend: Backend) {
        let scene = Scene::set(backend).await;
        let launch = scene.launch();
        Stock::open(&launch.database()).unwrap();
        // A launcher that leaves the copy's standard input to this test, so that only the launcher's own end
        // wakes the copy.
        let mut launcher = Command::new("sh");
        launcher.args(["-c", "exec 3<&0; \"$0\" \"$@\" <&3 & echo $!; wait"]).arg(&launch.program);
        launcher.args(["serve", "--leash", "--name", "a", "--database"]).arg(launch.database());
        launcher.args(launch.coordination.arguments());
        launcher.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut launcher = launcher.spawn().unwrap();
        let input = launcher.stdin.take().unwrap();
        let mut output = BufReader::new(launcher.stdout.take().unwrap()).lines();
        // One line is the launcher's, the other the copy's.
        let mut lines = [(); 2].map(|()| String::new());
        for line in &mut lines {
            *line = soon(output.next_line()).await.unwrap().unwrap();
        }
        assert!(lines.iter().any(|line| line.starts_with("a serves on ")), "{lines:?}");
        let copy: i32 = lines.iter().find_map(|line| line.parse().ok()).unwrap();
        kill_process(Pid::from_raw(copy).unwrap(), Signal::STOP).unwrap();
        until(async || state_of(copy).as_deref() == Some("T")).await;
        soon(launcher.kill()).await.unwrap();
        until(async || state_of(copy).is_none_or(|state| state != "T")).await;
        drop(input);
        let stopped = soon(output.next_line()).await.unwrap().unwrap();
        assert_eq!(stopped, "a has stopped, leaving nothing");
    }

    async fn a_draining_copy_answers_and_finishes_its_requests_before_it_exits(backend: Backend) {
        let scene = Scene::set(backend).await;
        let mut fleet = alone(&scene).await;
        until_announced(&fleet).await;
        let client = scene.launch().coordination.client("test").connect().await.unwrap();
        let slow = Policy { charge_ms: 700, ..Policy::default() };
        policy::config(&client).unwrap().publish(&slow).await.unwrap();
        let copy = fleet.copy("a").unwrap();
        until(async || readiness(copy).await["policy"]["charge_ms"] == 700).await;
        until(async || !get(copy, "/stock/tea").await.1.contains(":0,")).await;
        let (lock, order) = (Mutex::new(&client, "/locks/tea").unwrap(), order(1));
        let stop = async {
            until(async || !lock.participants().await.unwrap().is_empty()).await;
            copy.signal(Signal::TERM).unwrap();
            until(async || get(copy, "/readyz").await.0 == 503).await;
            assert_eq!(get(copy, "/stock/tea").await.0, 200, "callers that have not learned of the drain are served");
        };
        let ((status, body), ()) = soon(async { tokio::join!(send(copy, &order), stop) }).await;
        assert_eq!(status, 201, "{body}");
        assert_eq!(soon(fleet.ended("a")).await.unwrap(), "a has stopped, leaving nothing");
    }
}
