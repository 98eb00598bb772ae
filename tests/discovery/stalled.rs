//! A process that is stalled while its instance's node is deleted and another process registers the instance.

use docent::discovery::{Instance, Registry};
use docent::{Client, Released};
use docent_battery::{Backend, Direction, Proxy, TestServer, Traced, both_backends_in_real_time};
use docent_proto::EventKind;
use docent_tests::{SESSION, Stalled, builder, connect, soon, tick, until};
use std::fs;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const SERVICE: &str = "orders";
const FOLDER: &str = "/services";
const NODE: &str = "/services/orders/one";

fn instance(payload: &str) -> Instance<String> {
    Instance::new(SERVICE, "10.0.0.7", 8080).id("one").payload(payload.to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Update,
    Deregister,
    Drop,
}

/// Starts a process that stalls when its instance is registered and has been updated `updates` times.
async fn stalled(server: &TestServer, updates: u32, act: Act) -> Stalled<()> {
    let register = async move |client: &Client| {
        let registry = Registry::new(client, FOLDER).unwrap();
        let registration = registry.register(instance("old")).await.unwrap();
        for update in 0..updates {
            registration.update(instance(&format!("old {update}"))).await.unwrap();
        }
        registration
    };
    let connecting = builder(server, server.connect_string());
    Stalled::after(connecting, register, async move |registration| match act {
        Act::Update => {
            // The update waits until the node of the other process is deleted.
            let update = registration.update(instance("late"));
            let _ = tokio::time::timeout(std::time::Duration::from_millis(300), update).await;
        }
        Act::Deregister => assert_eq!(soon(registration.deregister()).await.unwrap(), Released::Done),
        Act::Drop => drop(registration),
    })
    .await
}

/// A multithreaded process with a registered instance. It is stopped when the instance has been updated.
struct Stopped {
    proxy: Proxy,
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// Number of frames in the proxy's trace when the process had stopped.
    traced: usize,
    /// Bytes that were then left in the process's sockets.
    backlog: usize,
}

impl Stopped {
    async fn start(server: &TestServer, act: &str, thread: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_instance"));
        let proxy = server.proxy().await;
        command.args([&proxy.connect_string(), server.root()]);
        command.args([SESSION, tick()].map(|time| time.as_millis().to_string())).args([act, thread]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut stopped =
            Self { proxy, process, input, lines: BufReader::new(output).lines(), traced: 0, backlog: 0 };
        assert_eq!(soon(stopped.lines.next_line()).await.unwrap().as_deref(), Some("ready"));
        stopped.signal("-STOP").await;
        until(async || stopped.is_stopped()).await;
        (stopped.traced, stopped.backlog) = (stopped.proxy.trace().len(), stopped.unread());
        stopped
    }

    async fn signal(&self, signal: &str) {
        let id = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().await.unwrap().success());
    }

    /// Returns true if all threads have stopped. On a busy machine some threads keep running for a while
    /// after the signal.
    fn is_stopped(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id().unwrap())).unwrap();
        threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("stat")).unwrap()).all(|stat| {
            let (_, state) = stat.rsplit_once(") ").unwrap();
            state.starts_with('T')
        })
    }

    /// Bytes that the process's sockets have received and the process has not read.
    fn unread(&self) -> usize {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", self.process.id().unwrap())).unwrap();
        let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let names: Vec<_> = targets.map(|target| target.to_string_lossy().into_owned()).collect();
        let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
        let unread = sockets.lines().skip(1).filter_map(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let (_, unread) = fields[4].split_once(':')?;
            names
                .contains(&format!("socket:[{}]", fields[9]))
                .then(|| usize::from_str_radix(unread, 16).unwrap())
        });
        unread.sum()
    }

    /// Waits until the deletion event of the instance's node is in the process's socket.
    async fn until_event_arrives(&self) {
        let is_deletion = |frame: &Traced| frame.event == Some(EventKind::Deleted);
        self.proxy.until(|trace| trace[self.traced..].iter().any(is_deletion)).await;
        let trace = self.proxy.trace();
        let deletion = trace.iter().rposition(is_deletion).unwrap();
        let sent =
            trace[self.traced..=deletion].iter().filter(|frame| frame.direction == Direction::ToClient);
        // Each frame has a length in front of it.
        let arrived: usize = sent.map(|frame| 4 + frame.length).sum();
        until(async || self.unread() >= self.backlog + arrived).await;
    }

    /// Resumes the process, and waits until it has performed its act.
    async fn resume(mut self) {
        self.input.write_all(b"go\n").await.unwrap();
        self.signal("-CONT").await;
        assert_eq!(soon(self.lines.next_line()).await.unwrap().as_deref(), Some("done"));
        soon(self.process.wait()).await.unwrap();
    }
}

both_backends_in_real_time! {
    async fn a_stopped_process_of_several_threads_leaves_the_instance_of_the_next_one_alone(backend: Backend) {
        /// Number of attempts, because the thread is late only by chance.
        const TURNS: usize = 10;
        let server = backend.start().await;
        let cases = [("deregister", "shared"), ("update", "shared"), ("deregister", "dedicated"), ("update", "dedicated")];
        for (act, thread) in cases.repeat(TURNS) {
            let other = connect(&server).await;
            let process = Stopped::start(&server, act, thread).await;
            other.delete(NODE, None).await.unwrap();
            let registry = Registry::new(&other, FOLDER).unwrap();
            let registration = soon(registry.register(instance("new"))).await.unwrap();
            soon(registration.update(instance("newer"))).await.unwrap();
            let before = other.get(NODE).await.unwrap();
            process.until_event_arrives().await;
            process.resume().await;
            let after = other.get(NODE).await.unwrap();
            assert_eq!((after.stat, after.data), (before.stat, before.data), "{act} {thread}");
            soon(other.close()).await;
        }
    }

    async fn a_stalled_process_leaves_the_instance_of_the_next_one_alone(backend: Backend) {
        let server = backend.start().await;
        for updates in [0, 1, 2] {
            for act in [Act::Deregister, Act::Drop, Act::Update] {
                let case = format!("{updates} {act:?}");
                let other = connect(&server).await;
                let process = stalled(&server, updates, act).await;
                other.delete(NODE, None).await.unwrap();
                let registry = Registry::new(&other, FOLDER).unwrap();
                let registration = soon(registry.register(instance("new"))).await.unwrap();
                for _ in 0..updates {
                    soon(registration.update(instance("newer"))).await.unwrap();
                }
                let before = other.get(NODE).await.unwrap();
                process.resume().await;
                let after = other.get(NODE).await.unwrap();
                assert_eq!((after.stat, after.data), (before.stat, before.data), "{case}");
                soon(other.close()).await;
            }
        }
    }
}
