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

/// Longer than any server takes to start again.
const LONG_SESSION: Duration = Duration::from_secs(36);

/// In a child process: connect string and namespace.
const CHILD: &str = "DOCENT_TEST_CHILD";

/// Line by which a child says that it is ready.
const READY: &str = "child is ready";

fn labelled(server: &TestServer, label: &str) -> ClientBuilder {
    builder(server, server.connect_string()).label(label)
}

async fn named(server: &TestServer, label: &str) -> Client {
    labelled(server, label).connect().await.unwrap()
}

/// Waits until the log of `client` has a line with `text`.
async fn said(log: &Log, client: &str, text: &str) {
    soon(async {
        while !log.has(client, text) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// This test again, in a process of its own that reads [`CHILD`].
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

/// As [`child`], once it is ready.
async fn ready_child(test: &str, server: &TestServer) -> Child {
    let mut child = child(test, server);
    let heard = tokio::task::spawn_blocking(move || {
        hear(&mut child, READY);
        child
    });
    soon(heard).await.unwrap()
}

/// Reads what the child says up to a line that ends with `last`, without that.
fn hear(child: &mut Child, last: &str) -> String {
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

/// The client of a child process, if this is one.
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
        said(&log, "shop", "no server can be reached").await;
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
        said(&log, "shop", "generation=2").await;
        soon(client.close()).await;
        assert_snapshot("session-ended", &log.text(&["shop"]));
    }

    async fn a_leader_that_is_told_to_stop_and_the_next_one(backend: Backend) {
        let (log, _logging) = Log::from_here_on();
        let server = backend.start().await;
        let (first, second) = (named(&server, "first").await, named(&server, "second").await);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let election = Election::new(&first, "/leader").unwrap();
        let works = |_| std::future::pending::<Result<(), Error>>();
        let leader = tokio::spawn(async move { election.run(works).until(stopped).await });
        said(&log, "first", "leading").await;
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
        said(&log, "first", "generation=2").await;
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
        let view = soon(Registry::new(&caller, "/services").unwrap().service::<()>("web")).await.unwrap();
        let instance = Instance::new("web", "10.0.0.1", 80).id("a");
        let registered = Registry::new(&copy, "/services").unwrap();
        let registered = soon(registered.register(instance)).await.unwrap();
        until(async || view.instances().iter().count() == 1).await;
        soon(registered.drain(Duration::from_millis(200))).await.unwrap();
        said(&log, "caller", "gone=a").await;
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
        let view = soon(Registry::new(&caller, "/services").unwrap().service::<()>("api")).await.unwrap();
        let test = format!("{backend:?}::an_instance_that_is_killed_and_started_again").to_lowercase();
        let mut child = ready_child(&test, &server).await;
        until(async || view.instances().iter().count() == 1).await;
        signal(&child, "-KILL");
        child.wait().unwrap();
        // One of its services is started again at once, and finds the node that the killed one left.
        let copy = named(&server, "copy").await;
        let registry = Registry::new(&copy, "/services").unwrap();
        let _web = soon(registry.register(Instance::new("web", "10.0.0.2", 80).id("b"))).await.unwrap();
        until(async || view.instances().iter().count() == 0).await;
        soon(copy.close()).await;
        soon(caller.close()).await;
        assert_snapshot("killed", &log.text(&["copy", "caller"]));
    }

    async fn a_process_that_stood_still(backend: Backend) {
        if let Some(builder) = child_builder() {
            return stand_still(short(builder)).await;
        }
        let server = backend.start().await;
        let test = format!("{backend:?}::a_process_that_stood_still").to_lowercase();
        let other = named(&server, "other").await;
        assert_snapshot("stood-still", &stopped(&test, &server, &other, Duration::ZERO).await);
    }
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_process_with_default_settings_that_stood_still_for_32_seconds() {
    const NAME: &str = "a_process_with_default_settings_that_stood_still_for_32_seconds";
    if let Some(builder) = child_builder() {
        return stand_still(builder).await;
    }
    // As ZooKeeper's sample configuration has it.
    let options = ServerOptions::default().tick(Duration::from_secs(2));
    let server = Backend::Real.start_own_with(options).await;
    let other = Client::builder(server.connect_string()).namespace(server.root());
    let other = other.label("other").connect().await.unwrap();
    let text = stopped(NAME, &server, &other, Duration::from_secs(32)).await;
    assert_snapshot("stood-still-for-32-s", &text);
}

/// A session timeout that is over soon.
fn short(builder: ClientBuilder) -> ClientBuilder {
    builder.session_timeout(SHORT_SESSION).server_tick(tick())
}

/// Longer than a process is stopped: when it goes on, its timers are as late as it is.
const LONG: Duration = PATIENCE.saturating_mul(4);

/// In a child process: holds a lock until its session is lost and another one is there, and tells its log.
async fn stand_still(builder: ClientBuilder) {
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

/// Log of a child that is stopped for `least`, and until its session has ended and `other` has its lock.
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
        let text = hear(&mut child, READY);
        child.wait().unwrap();
        text
    });
    let mut text = soon(text).await.unwrap();
    // It depends on the moment at which it was stopped in which way it notices first.
    let ways = [
        "the client stood still for so long that the servers may be about to end its session",
        "the server closed the connection",
    ];
    for way in ways {
        text = text.replace(way, "the server gave no reply in time");
    }
    text
}
