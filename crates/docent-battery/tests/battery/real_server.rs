//! The life of a real server: start, stop, restart, freeze, and complete cleanup.

use docent_battery::{RawClient, RealServer};
use docent_proto::{Acl, Create, CreateMode, Request, Response};
use docent_testkit::eventually;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Environment variable set in the process that one of the tests starts in order to kill it.
const VICTIM: &str = "DOCENT_TESTKIT_VICTIM";
const TIMEOUT: Duration = Duration::from_secs(10);
static ONE_AT_A_TIME: Semaphore = Semaphore::const_new(1);

async fn turn() -> SemaphorePermit<'static> {
    ONE_AT_A_TIME.acquire().await.expect("the semaphore is never closed")
}

fn create(path: &str) -> Request {
    Request::Create(Create::new(path.into(), "value".into(), Acl::open(), CreateMode::Persistent, 0))
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_started_server_serves_and_leaves_nothing_behind_when_dropped() {
    let _turn = turn().await;
    let server = RealServer::start().await.unwrap();
    let (pid, folder) = (server.pid().unwrap(), server.folder().to_owned());
    let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
    client.call(create("/a")).await.unwrap();
    client.close().await.unwrap();
    assert!(runs(pid) && folder.exists());
    drop(server);
    assert!(!runs(pid), "process {pid} still exists");
    assert!(!folder.exists(), "{folder:?} still exists");
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_restarted_server_has_its_data_and_port() {
    let _turn = turn().await;
    let server = RealServer::start().await.unwrap();
    let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
    client.call(create("/kept")).await.unwrap();
    server.stop();
    assert_eq!(server.pid(), None);
    assert!(RawClient::open(server.address(), TIMEOUT).await.is_err());
    server.start_again().await.unwrap();
    let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
    let read = client.call(Request::GetData { path: "/kept".into(), watch: false }).await.unwrap();
    assert!(matches!(read, Response::Data { data: Some(data), .. } if data == "value"));
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_frozen_server_answers_only_once_it_is_thawed() {
    let _turn = turn().await;
    let server = RealServer::start().await.unwrap();
    let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
    server.freeze().unwrap();
    client.send([create("/late")]).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(300), client.reply()).await;
    assert!(early.is_err(), "a frozen server answered: {early:?}");
    server.thaw().unwrap();
    assert!(client.reply().await.unwrap().response.is_some());
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_panic_leaves_neither_process_nor_folder() {
    let _turn = turn().await;
    let server = Arc::new(RealServer::start().await.unwrap());
    let (pid, folder) = (server.pid().unwrap(), server.folder().to_owned());
    let panicked = tokio::spawn(async move {
        let _server = server;
        panic!("as a failed assertion would");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert!(!runs(pid) && !folder.exists());
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_killed_test_process_takes_its_server_and_folder_along() {
    if std::env::var_os(VICTIM).is_some() {
        return start_a_server_and_wait_to_be_killed().await;
    }
    let _turn = turn().await;
    let mut victim = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "real_server::a_killed_test_process_takes_its_server_and_folder_along",
        ])
        .env(VICTIM, "1")
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (pid, folder) = announced(victim.stdout.take().unwrap()).await;
    assert!(runs(pid) && folder.exists());
    victim.kill().await.unwrap();
    let left = async || (runs(pid), folder.exists());
    eventually(TIMEOUT, left, |left| *left == (false, false))
        .await
        .expect("the server and its folder disappear within ten seconds");
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn the_shared_server_is_started_once() {
    let first = RealServer::shared().await.unwrap().pid();
    assert_eq!(RealServer::shared().await.unwrap().pid(), first);
}

async fn start_a_server_and_wait_to_be_killed() {
    let server = RealServer::start().await.expect("a real server starts here, as in the other tests");
    println!("server {} {}", server.pid().unwrap_or_default(), server.folder().display());
    std::future::pending::<()>().await;
}

/// Returns the process id and folder of the server, as the victim printed them.
async fn announced(output: tokio::process::ChildStdout) -> (u32, PathBuf) {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await.expect("the victim's output can be read") {
        // The test harness may have printed the beginning of the line.
        let Some((_, line)) = line.split_once("server ") else { continue };
        let (pid, folder) = line.split_once(' ').expect("an id and a folder");
        return (pid.parse().expect("an id is a number"), folder.into());
    }
    panic!("the victim printed nothing about its server");
}
