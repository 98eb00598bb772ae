//! A process that is stopped with SIGTERM while its servers are reachable or unreachable.

use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use docent_tests::{SESSION, connect, soon, tick};
use std::collections::BTreeSet;
use std::process::{Command as Shell, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::Instant;

/// Time limit of the service's shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(8);

/// Time limit of the process: its shutdown, and the exit of a process on a busy machine.
const EXIT_LIMIT: Duration = Duration::from_secs(10);

struct Service {
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Service {
    /// Starts the service, and waits until all of its work is running.
    async fn start(server: &TestServer) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
        command.args([&server.connect_string(), server.root()]);
        command.args([SESSION, tick()].map(|time| time.as_millis().to_string()));
        command.arg(SHUTDOWN_TIMEOUT.as_secs().to_string()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut service = Self { process, output };
        assert_eq!(service.line().await.as_deref(), Some("ready"));
        service
    }

    async fn line(&mut self) -> Option<String> {
        soon(self.output.next_line()).await.unwrap()
    }

    /// Sends SIGTERM. Returns the lines that the service printed afterwards, and the time until it exited.
    async fn terminate(mut self) -> (Vec<String>, Duration) {
        let id = self.process.id().unwrap().to_string();
        let sent = Instant::now();
        assert!(Shell::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let mut lines = Vec::new();
        while let Some(line) = self.line().await {
            lines.push(line);
        }
        assert!(soon(self.process.wait()).await.unwrap().success(), "{lines:#?}");
        (lines, sent.elapsed())
    }
}

/// Returns the kinds of the nodes that the lines report as left behind.
fn remaining(lines: &[String]) -> BTreeSet<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("left ")?.split(' ').next()).collect()
}

both_backends_in_real_time! {
    async fn a_service_that_is_terminated_in_an_outage_ends_in_time_and_names_its_remaining_nodes(backend: Backend) {
        let server = backend.start_own().await;
        let service = Service::start(&server).await;
        server.stop().await;
        let (lines, took) = service.terminate().await;
        assert!(took < EXIT_LIMIT, "the exit took {took:?}: {lines:#?}");
        assert_eq!(remaining(&lines), BTreeSet::from(["election", "member", "mutex", "queue", "registration"]), "{lines:#?}");
        let registration = "left registration /services/orders/a";
        assert!(lines.iter().any(|line| line == registration), "{lines:#?}");
    }

    async fn a_service_that_is_terminated_leaves_no_node_to_session_expiry(backend: Backend) {
        let server = backend.start_own().await;
        let service = Service::start(&server).await;
        let other = connect(&server).await;
        let (lines, took) = service.terminate().await;
        assert!(took < EXIT_LIMIT && remaining(&lines).is_empty(), "the exit took {took:?}: {lines:#?}");
        other.sync("/").await.unwrap();
        for folder in ["/services/orders", "/members", "/lock", "/election", "/jobs/claims"] {
            let remaining = other.children(folder).await.map_or(Vec::new(), |children| children.names);
            assert!(remaining.is_empty(), "{folder}: {remaining:?}");
        }
    }
}
