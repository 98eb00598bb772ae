//! A process that is told to stop by SIGTERM, while its servers are there and while they are away.

use docent_battery::{Backend, TestServer, both_backends_in_real_time};
use docent_tests::{SESSION, connect, soon, tick};
use std::collections::BTreeSet;
use std::process::{Command as Shell, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::Instant;

/// Time that the service gives its shutdown.
const GIVEN: Duration = Duration::from_secs(8);

/// Time in which it must have ended: its own, and that of a process to end on a busy machine.
const ENDED: Duration = Duration::from_secs(10);

struct Service {
    process: Child,
    says: Lines<BufReader<ChildStdout>>,
}

impl Service {
    /// Starts the service, and waits until it does all that it does.
    async fn start(server: &TestServer) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_service"));
        command.args([&server.connect_string(), server.root()]);
        command.args([SESSION, tick()].map(|time| time.as_millis().to_string()));
        command.arg(GIVEN.as_secs().to_string()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let says = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut service = Self { process, says };
        assert_eq!(service.line().await.as_deref(), Some("ready"));
        service
    }

    async fn line(&mut self) -> Option<String> {
        soon(self.says.next_line()).await.unwrap()
    }

    /// Sends SIGTERM. Returns the lines that the service says then, and the time until it has ended.
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

/// Kinds of the nodes that the lines name as left behind.
fn left(lines: &[String]) -> BTreeSet<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("left ")?.split(' ').next()).collect()
}

both_backends_in_real_time! {
    async fn a_service_that_is_terminated_in_an_outage_ends_in_time_and_names_what_it_leaves(backend: Backend) {
        let server = backend.start_own().await;
        let service = Service::start(&server).await;
        server.stop().await;
        let (lines, took) = service.terminate().await;
        assert!(took < ENDED, "it took {took:?}: {lines:#?}");
        assert_eq!(left(&lines), BTreeSet::from(["election", "member", "mutex", "queue", "registration"]), "{lines:#?}");
        let registration = "left registration /services/orders/a";
        assert!(lines.iter().any(|line| line == registration), "{lines:#?}");
    }

    async fn a_service_that_is_terminated_leaves_nothing_to_the_end_of_its_session(backend: Backend) {
        let server = backend.start_own().await;
        let service = Service::start(&server).await;
        let other = connect(&server).await;
        let (lines, took) = service.terminate().await;
        assert!(took < ENDED && left(&lines).is_empty(), "it took {took:?}: {lines:#?}");
        other.sync("/").await.unwrap();
        for folder in ["/services/orders", "/members", "/lock", "/election", "/jobs/claims"] {
            let left = other.children(folder).await.map_or(Vec::new(), |children| children.names);
            assert!(left.is_empty(), "{folder}: {left:?}");
        }
    }
}
