//! Scenarios, each with the log of its clients.

use crate::log::{Log, assert_snapshot};
use docent::client::ClientBuilder;
use docent::{Client, ConnectionState, Election, Error, Instance, Mutex, Registry};
use docent_battery::{Backend, ServerOptions, TestServer, both_backends_in_real_time};
use docent_tests::{PATIENCE, SHORT_SESSION, builder, soon, tick, until};
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Longer than any server takes to restart.
const LONG_SESSION: Duration = Duration::from_secs(36);

/// Environment variable of a child process: connect string and namespace.
const CHILD: &str = "DOCENT_TEST_CHILD";

/// Line with which a child reports that it is ready.
const READY: &str = "child is ready";

fn labelled(server: &TestServer, label: &str) -> ClientBuilder {
    builder(server, server.connect_string()).label(label)
}

async fn named(server: &TestServer, label: &str) -> Client {
    labelled(server, label).connect().await.unwrap()
}

/// Waits until the log of `client` has a line with `text`.
async fn until_logged(log: &Log, client: &str, text: &str) {
    soon(async {
        while !log.has(client, text) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Runs this test again, in a separate process that reads [`CHILD`].
fn child(test: &str, server: &TestServer) -> Child {
    let child = format!("{} {}", server.connect_string(), server.root());
    Command::new(env::current_exe().unwrap())
        .args([&format!("scenarios::{test}"), "--exact", "--nocapture", "--include-ignored"])
        .env(CHILD, child)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Does the same as [`child`], and waits until the child is ready.
async fn ready_child(test: &str, server: &TestServer) -> Child {
    let mut child = child(test, server);
    let ready = tokio::task::spawn_blocking(move || {
        read_until(&mut child, READY);
        child
    });
    soon(ready).await.unwrap()
}

/// Reads the child's output up to a line that ends with `last`. The returned text does not include `last`.
fn read_until(child: &mut Child, last: &str) -> String {
    let mut text = String::new();
    for line in BufReader::new(child.stdout.as_mut().unwrap()).lines() {
        let line = line.unwrap();
        if line.ends_with(last) {
            break;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Returns the client settings of a child process, or `None` in the parent process.
fn child_builder() -> Option<ClientBuilder> {
    let setup = env::var(CHILD).ok()?;
    let (connect_string, namespace) = setup.split_once(' ').unwrap();
    Some(Client::builder(connect_string).namespace(namespace))
}

both_backends_in_real_time! {
    async fn an_outage_of_the_server_and_its_return(backend: Backend) {
        let (log, _logging) = Log::from_here_on();
        let server = backend.start_own().await;
        let direct = builder(&server, server.address().to_string()).session_timeout(LONG_SESSION);
        let client = direct.label("shop").connect().await.unwrap();
        let guard = soon(Mutex::new(&client, "/locks/stock").unwrap().acquire()).await.unwrap();
        server.stop().await;
        until_logged(&log, "shop", "cannot reach any server").await;
        server.start_again().await;
        soon(client.state().reached(ConnectionState::Connected)).await;
        soon(guard.release()).await.unwrap();
        soon(client.close()).await;
        assert_snapshot("outage", &log.text(&["shop"]));
    }

    async fn a_session_that_the_servers_end_takes_its_lock_with_it(backend: Backend) {
        let (log, _logging) = Log::from_here_on();
        let server = backend.start().await;
        let client = named(&server, "shop").await;
        let guard = soon(Mutex::new(&client, "/locks/stock").unwrap().acquire()).await.unwrap();
        server.expire(client.session_id().unwrap()).await.unwrap();
        soon(guard.lost()).await;
        until_logged(&log, "shop", "generation=2").await;
        soon(client.close()).await;
        assert_snapshot("session-ended", &log.text(&["shop"]));
    }

    async fn a_leader_that_is_asked_to_resign_and_the_next_one(backend: Backend) {
        let (log, _logging) = Log::from_here_on();
        let server = backend.start().await;
        let (first, second) = (named(&server, "first").await, named(&server, "second").await);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let election = Election::new(&first, "/leader").unwrap();
        let works = |_| std::future::pending::<Result<(), Error>>();
        let leader = tokio::spawn(async move { election.run(works).until(stopped).await });
        until_logged(&log, "first", "leading").await;
        let next = Election::new(&second, "/leader").unwrap();
        let campaign = tokio::spawn(next.campaign());
        until(async || next.candidates().await.unwrap().len() == 2).await;
        stop.send(()).unwrap();
        soon(leader).await.unwrap().unwrap();
        soon(soon(campaign).await.unwrap().unwrap().resign()).await.unwrap();
        soon(first.close()).await;
        soon(second.close()).await;
        assert_snapshot("leader-told-to-stop", &log.text(&["first", "second"]));
    }

    async fn a_leader_that_is_lost_and_the_one_that_takes_over(backend: Backend) {
        let (log, _logging) = Log::from_here_on();
        let server = backend.start().await;
        let (first, second) = (named(&server, "first").await, named(&server, "second").await);
        let delayed = |client| {
            Election::builder(client, "/leader").takeover_delay(Duration::from_millis(500)).build().unwrap()
        };
        let lost = soon(delayed(&first).campaign()).await.unwrap();
        server.expire(first.session_id().unwrap()).await.unwrap();
        soon(lost.lost()).await;
        drop(lost);
        until_logged(&log, "first", "generation=2").await;
        soon(soon(delayed(&second).campaign()).await.unwrap().resign()).await.unwrap();
        soon(first.close()).await;
        soon(second.close()).await;
        assert_snapshot("leader-lost", &log.text(&["first", "second"]));
    }

    async fn an_orderly_stop_of_an_instance(backend: Backend) {
        let (log, _logging) = Log::from_here_on();
        let server = backend.start().await;
        let copy = named(&server, "copy").await;
        let caller = labelled(&server, "caller").inline_hooks().connect().await.unwrap();
        let view = soon(Registry::new(&caller, "/services").unwrap().service("web")).await.unwrap();
        let instance = Instance::new("web", "10.0.0.1", 80).id("a");
        let registered = Registry::new(&copy, "/services").unwrap();
        let registered = soon(registered.register(instance)).await.unwrap();
        until(async || view.instances().iter().count() == 1).await;
        soon(registered.drain(Duration::from_millis(200))).await.unwrap();
        until_logged(&log, "caller", "gone=a").await;
        soon(copy.close()).await;
        soon(caller.close()).await;
        assert_snapshot("orderly-stop", &log.text(&["copy", "caller"]));
    }

    async fn an_instance_that_is_killed_and_started_again(backend: Backend) {
        if let Some(builder) = child_builder() {
            let builder = short(builder);
            let registry = Registry::new(&builder.connect().await.unwrap(), "/services").unwrap();
            let _web = registry.register(Instance::new("web", "10.0.0.2", 80).id("b")).await.unwrap();
            let _api = registry.register(Instance::new("api", "10.0.0.2", 81).id("b")).await.unwrap();
            println!("{READY}");
            return std::future::pending().await;
        }
        let (log, _logging) = Log::from_here_on();
        let server = backend.start().await;
        let caller = labelled(&server, "caller").inline_hooks().connect().await.unwrap();
        let view = soon(Registry::new(&caller, "/services").unwrap().service("api")).await.unwrap();
        let test = format!("{backend:?}::an_instance_that_is_killed_and_started_again").to_lowercase();
        let mut child = ready_child(&test, &server).await;
        until(async || view.instances().iter().count() == 1).await;
        signal(&child, "-KILL");
        child.wait().unwrap();
        // Another copy of the service starts immediately, and finds the node that the killed process left.
        let copy = named(&server, "copy").await;
        let registry = Registry::new(&copy, "/services").unwrap();
        let _web = soon(registry.register(Instance::new("web", "10.0.0.2", 80).id("b"))).await.unwrap();
        until(async || view.instances().iter().count() == 0).await;
        soon(copy.close()).await;
        soon(caller.close()).await;
        assert_snapshot("killed", &log.text(&["copy", "caller"]));
    }

    async fn a_process_that_was_stopped(backend: Backend) {
        if let Some(builder) = child_builder() {
            return hold_until_next_session(short(builder)).await;
        }
        let server = backend.start().await;
        let test = format!("{backend:?}::a_process_that_was_stopped").to_lowercase();
        let other = named(&server, "other").await;
        assert_snapshot("stood-still", &stopped(&test, &server, &other, Duration::ZERO).await);
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_process_with_default_settings_that_was_stopped_for_32_seconds() {
    const NAME: &str = "a_process_with_default_settings_that_was_stopped_for_32_seconds";
    if let Some(builder) = child_builder() {
        return hold_until_next_session(builder).await;
    }
    // The tick of ZooKeeper's sample configuration.
    let options = ServerOptions::default().tick(Duration::from_secs(2));
    let server = Backend::Real.start_own_with(options).await;
    let other = Client::builder(server.connect_string()).namespace(server.root());
    let other = other.label("other").connect().await.unwrap();
    let text = stopped(NAME, &server, &other, Duration::from_secs(32)).await;
    assert_snapshot("stood-still-for-32-s", &text);
}

/// Sets a short session timeout.
fn short(builder: ClientBuilder) -> ClientBuilder {
    builder.session_timeout(SHORT_SESSION).server_tick(tick())
}

/// Longer than the process is stopped, because its timers are late when it resumes.
const LONG: Duration = PATIENCE.saturating_mul(4);

/// In a child process: holds a lock until its session is lost and a new session is open, and prints its log.
async fn hold_until_next_session(builder: ClientBuilder) {
    let (log, _logging) = Log::from_here_on();
    let client = builder.label("shop").connect().await.unwrap();
    let guard = Mutex::new(&client, "/locks/stock").unwrap().acquire().await.unwrap();
    println!("{READY}");
    let next = async {
        while !log.has("shop", "generation=2") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, next).await.unwrap();
    assert!(!guard.is_held());
    client.close().await;
    print!("{}", log.text(&["shop"]));
    println!("{READY}");
    std::io::stdout().flush().unwrap();
}

/// Returns the log of a child that is stopped for at least `least`, and until its session has ended and
/// `other` has its lock.
async fn stopped(test: &str, server: &TestServer, other: &Client, least: Duration) -> String {
    let mut child = ready_child(test, server).await;
    signal(&child, "-STOP");
    let until = Instant::now() + least;
    let lock = Mutex::new(other, "/locks/stock").unwrap();
    let acquired = tokio::time::timeout(LONG, lock.acquire()).await.unwrap();
    soon(acquired.unwrap().release()).await.unwrap();
    sleep_until(until).await;
    signal(&child, "-CONT");
    let text = tokio::task::spawn_blocking(move || {
        let text = read_until(&mut child, READY);
        child.wait().unwrap();
        text
    });
    let mut text = soon(text).await.unwrap();
    // The moment of the stop determines which of these the client notices first.
    let ways = [
        "the client was paused for too long; the servers may be about to expire its session",
        "the server closed the connection",
    ];
    for way in ways {
        text = text.replace(way, "the server gave no reply in time");
    }
    // It also determines whether the guard notices its loss before the session notices the pause.
    let mut lines: Vec<_> = text.lines().collect();
    let place = |lines: &[&str], part| lines.iter().position(|line| line.contains(part)).unwrap();
    let guard = lines.remove(place(&lines, "guard is lost"));
    lines.insert(place(&lines, "session is lost"), guard);
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    text.replace(" guards=0\n", " guards=1 certain_seconds=<time>\n")
}
