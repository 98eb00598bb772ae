//! The examples as a user would start them, each on its embedded server and on a real ZooKeeper.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue fails")]

mod console;
mod smallest;

use docent_battery::{Backend, ServerOptions, both_backends_in_real_time};
use std::env;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Tick that the examples assume of a real ensemble.
const TICK: Duration = Duration::from_secs(2);

/// Time limit of an example, longer than any takes on a mostly idle machine.
const PATIENCE: Duration = Duration::from_secs(180);

both_backends_in_real_time! {
    async fn the_tour_shows_all_recipes(backend: Backend) {
        let output = run(backend, "tour", &[]).await;
        let shown = ["one lock", "read/write lock", "election", "a queue", "a service", "configuration", "all checks passed"];
        for part in shown {
            assert!(output.to_lowercase().contains(part), "the tour does not print {part:?}:\n{output}");
        }
    }

    async fn processes_count_under_one_lock(backend: Backend) {
        let output = run(backend, "counter", &["--processes", "2", "--increments", "20"]).await;
        assert!(output.contains("40"), "the two processes add 20 each:\n{output}");
    }

    async fn readers_and_writers_take_turns(backend: Backend) {
        run(backend, "read_write_lock", &[]).await;
    }

    async fn permits_limit_the_number_of_workers(backend: Backend) {
        run(backend, "semaphore", &[]).await;
    }

    async fn another_worker_leads_when_the_leader_is_killed(backend: Backend) {
        run(backend, "leader_worker", &[]).await;
    }

    async fn a_job_of_a_killed_consumer_is_done(backend: Backend) {
        run(backend, "work_queue", &[]).await;
    }

    async fn a_client_balances_over_servers_that_start_and_stop(backend: Backend) {
        run(backend, "service", &[]).await;
    }

    async fn a_service_follows_its_configuration(backend: Backend) {
        run(backend, "live_config", &["demo"]).await;
    }

    async fn hosts_join_and_leave(backend: Backend) {
        run(backend, "members", &["demo"]).await;
    }
}

/// Returns the output of an example on a backend. The example must exit successfully on its own.
async fn run(backend: Backend, example: &str, arguments: &[&str]) -> String {
    let server = match backend {
        Backend::Memory | Backend::As(_) | Backend::Embedded => None,
        Backend::Real => Some(backend.start_own_with(ServerOptions::default().tick(TICK)).await),
    };
    let address = server.as_ref().map(|server| server.address().to_string());
    output(example, arguments, address.as_deref()).await
}

/// Returns the output of an example, which must exit successfully on its own. Without the address of a server
/// the example starts one.
async fn output(example: &str, arguments: &[&str], server: Option<&str>) -> String {
    let mut command = Command::new(built(example));
    command.args(arguments).env_remove("DOCENT_CONNECT").env_remove("RUST_LOG");
    command.envs(server.map(|address| ("DOCENT_CONNECT", address)));
    command.stdin(Stdio::null()).kill_on_drop(true);
    let ended = timeout(PATIENCE, command.output()).await;
    let Output { status, stdout, stderr } =
        ended.unwrap_or_else(|_| panic!("{example} did not end within {PATIENCE:?}")).unwrap();
    let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{example} ended with {status}:\n{output}\n{errors}");
    assert!(!output.is_empty(), "{example} printed nothing");
    output.into_owned()
}

/// Returns the path where cargo builds an example, beside the folder of this test.
fn built(example: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples").join(example);
    assert!(path.exists(), "{path:?} is missing: cargo build --package docent-examples --examples");
    path
}
