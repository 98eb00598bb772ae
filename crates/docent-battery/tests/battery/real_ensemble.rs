//! Tests of a real ensemble: leaders, followers, and servers that are cut off.

use docent_battery::{RawClient, RawError, RealEnsemble, RealServer};
use docent_proto::{Acl, Create, CreateMode, Request};
use docent_testkit::eventually;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Far longer than servers wait for each other.
const PATIENCE: Duration = Duration::from_secs(60);

fn create(path: &str) -> Request {
    Request::Create(Create::new(path.into(), "value".into(), Acl::open(), CreateMode::Persistent, 0))
}

fn exists(path: &str) -> Request {
    Request::Exists { path: path.into(), watch: false }
}

/// Returns true for the error of a client whose server closes the link.
fn hangs_up(error: &RawError) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error, RawError::Io(error) if [BrokenPipe, ConnectionReset, UnexpectedEof].contains(&error.kind()))
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn another_server_leads_when_the_leader_is_killed_and_nothing_is_left_behind() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let mut client = RawClient::open(ensemble.servers()[leader].address(), TIMEOUT).await.unwrap();
    client.call(create("/kept")).await.unwrap();
    ensemble.servers()[leader].stop();
    let next = ensemble.leader().await.unwrap();
    assert_ne!(next, leader);
    ensemble.servers()[leader].start_again().await.unwrap();
    for server in ensemble.servers() {
        let mut client = RawClient::open(server.address(), TIMEOUT).await.unwrap();
        client.call(Request::Sync { path: "/".into() }).await.unwrap();
        client.call(exists("/kept")).await.unwrap();
    }
    let folders: Vec<PathBuf> = ensemble.servers().iter().map(|server| server.folder().to_owned()).collect();
    let pids: Vec<u32> = ensemble.servers().iter().filter_map(RealServer::pid).collect();
    assert_eq!(pids.len(), 3);
    drop(ensemble);
    assert!(
        pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()),
        "one of the processes {pids:?} still exists"
    );
    assert!(folders.iter().all(|folder| !folder.exists()), "one of {folders:?} still exists");
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: run `cargo xtask test`"]
async fn a_follower_that_is_cut_off_answers_reads_until_it_finds_out_and_follows_again_when_it_can() {
    let ensemble = RealEnsemble::start().await.unwrap();
    let leader = ensemble.leader().await.unwrap();
    let follower = &ensemble.servers()[(leader + 1) % 3];
    let mut client = RawClient::open(follower.address(), TIMEOUT).await.unwrap();
    client.call(create("/a")).await.unwrap();
    ensemble.cut_off((leader + 1) % 3);
    client.call(exists("/a")).await.unwrap();
    let error = client.call(create("/b")).await.unwrap_err();
    assert!(hangs_up(&error), "{error}");
    // The other servers keep serving.
    let mut other = RawClient::open(ensemble.servers()[leader].address(), TIMEOUT).await.unwrap();
    other.call(create("/c")).await.unwrap();
    let error = RawClient::open(follower.address(), TIMEOUT).await.unwrap_err();
    assert!(hangs_up(&error), "{error}");

    ensemble.heal();
    let again = async || RawClient::open(follower.address(), TIMEOUT).await;
    let mut client =
        eventually(PATIENCE, again, Result::is_ok).await.expect("the server follows again").unwrap();
    client.call(Request::Sync { path: "/".into() }).await.unwrap();
    client.call(exists("/c")).await.unwrap();
}
