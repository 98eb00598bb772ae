//! Debian's Prometheus scrapes the targets that `docent discover -o file-sd --write` lists.

use crate::docent_command::{PATIENCE, Running, servers};
use crate::http::{get, serve};
use docent_battery::peer::Peer;
use docent_battery::{Backend, curator};
use docent_testkit::{Port, eventually};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop/Peer.java");
const METRICS: &str = "orders_total 7\n";
const SESSION: &str = "4000";

/// Starts Prometheus with its data in `folder`. It is killed on drop.
fn start_prometheus(folder: &Path, address: &str, targets: &Path) -> Child {
    let config = folder.join("prometheus.yml");
    let targets = targets.display();
    let text = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
         scrape_configs:\n\
         - job_name: orders\n  \
           file_sd_configs: [{{files: ['{targets}'], refresh_interval: 1s}}]\n  \
           relabel_configs: [{{source_labels: [__meta_docent_id], target_label: id}}]\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
    command.arg(format!("--web.listen-address={address}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().unwrap_or_else(|error| panic!("cannot run prometheus ({error}): install prometheus"))
}

/// Returns the JSON at a path of Prometheus' API.
async fn ask(address: &str, path: &str) -> io::Result<Value> {
    serde_json::from_str(&get(address, path).await?).map_err(io::Error::other)
}

/// Returns the ids of the targets that Prometheus scrapes, with the zone in the payload and their health.
async fn targets(address: &str) -> Result<Vec<[String; 3]>, String> {
    let reply = ask(address, "/api/v1/targets?state=active").await.map_err(|error| error.to_string())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let active = reply["data"]["activeTargets"].as_array().cloned().unwrap_or_default();
    let mut targets: Vec<_> = active
        .iter()
        .map(|target| {
            let zone = &target["discoveredLabels"]["__meta_docent_payload_zone"];
            [text(&target["labels"]["id"]), text(zone), text(&target["health"])]
        })
        .collect();
    targets.sort();
    Ok(targets)
}

async fn until_scraped(address: &str, wanted: &[[&str; 3]]) {
    let is_wanted = |targets: &Result<Vec<[String; 3]>, String>| {
        targets.as_ref().is_ok_and(|targets| targets.iter().eq(wanted.iter()))
    };
    eventually(PATIENCE, async || targets(address).await, is_wanted).await.unwrap().unwrap();
}

/// Starts a Curator client.
async fn curator(connect: &str) -> Peer {
    let mut java = Command::new("java");
    java.args(["-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", &curator::JARS.join(":"), PEER]);
    Peer::start(java.args([connect, SESSION, "10.0.0.7"]), curator::MISSING).await
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper, Curator and Prometheus: run `cargo xtask test`"]
async fn prometheus_scrapes_docents_and_javas_instances_through_a_kill() {
    scrapes_through_a_kill(Backend::Real).await;
}

#[tokio::test]
#[ignore = "needs Curator and Prometheus: run `cargo xtask test`"]
async fn prometheus_scrapes_the_instances_on_an_embedded_server_through_a_kill() {
    scrapes_through_a_kill(Backend::Embedded).await;
}

async fn scrapes_through_a_kill(backend: Backend) {
    let server = backend.start().await;
    let connect = servers(&server);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.json");
    let port = Port::claim().unwrap();
    let address = port.connect_string();
    let _prometheus = start_prometheus(folder.path(), &address, &file);
    let arguments = ["discover", "orders", "-o", "file-sd", "--write", file.to_str().unwrap()];
    let follower = Running::start(&connect, arguments);

    let mut services = JoinSet::new();
    let mut instances = Vec::new();
    for id in ["one", "two", "three"] {
        let (port, serving) = serve(&mut services, METRICS).await;
        let port = port.to_string();
        let place = ["register", "orders", "--address", "127.0.0.1", "--port", &port, "--id", id];
        let more = ["--meta", "zone=rust", "--session-timeout", "4s"];
        let mut instance = Running::start(&connect, place.iter().chain(&more));
        assert_eq!(instance.line().await, format!("/services/orders/{id} {id}"));
        instances.push((instance, serving));
    }
    let curator = curator(&connect).await;
    let java = curator.make("discovery /services").await;
    let (java_port, _serving) = serve(&mut services, METRICS).await;
    java.done(&format!("register orders java 127.0.0.1 {java_port} null 1 DYNAMIC zone=java null")).await;
    let up = |id, zone| [id, zone, "up"];
    let (one, two, three, java) =
        (up("one", "rust"), up("two", "rust"), up("three", "rust"), up("java", "java"));
    until_scraped(&address, &[java, one, three, two]).await;

    let (killed, serving) = instances.remove(1);
    serving.abort();
    killed.stop(Signal::KILL).await;
    until_scraped(&address, &[java, one, three]).await;

    for (instance, _) in instances {
        assert_eq!(instance.stop(Signal::TERM).await, 0);
    }
    until_scraped(&address, &[java]).await;
    assert_eq!(follower.stop(Signal::TERM).await, 143);
}
