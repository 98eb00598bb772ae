//! Debian's nginx and haproxy pass requests on to the instances that `docent discover --write` lists.

use crate::docent_command::{PATIENCE, Running, docent, servers};
use crate::http::{get, serve};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::{Port, eventually};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use tokio::process::{Child, Command};
use tokio::task::{AbortHandle, JoinSet};

const IDS: [&str; 3] = ["one", "two", "three"];

/// A proxy with its workers, all killed on drop.
struct Proxy {
    master: Child,
}

impl Proxy {
    fn start(command: &[&str], folder: &Path) -> Self {
        let mut child = Command::new(command[0]);
        child.args(&command[1..]).current_dir(folder).process_group(0);
        child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let master = child.spawn();
        Self {
            master: master.unwrap_or_else(|error| panic!("cannot run {} ({error}): install it", command[0])),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let group = self.master.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        // The proxy may have ended already.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
    }
}

/// Instances of one service: a web server each, and the `docent register` that announces it.
struct Fleet {
    connect: String,
    services: JoinSet<()>,
    instances: Vec<(Running, AbortHandle)>,
}

impl Fleet {
    async fn add(&mut self, id: &'static str) {
        let (port, serving) = serve(&mut self.services, id).await;
        let port = port.to_string();
        let place = ["register", "orders", "--address", "127.0.0.1", "--port", &port, "--id", id];
        let mut instance = Running::start(&self.connect, place.iter().chain(&["--session-timeout", "4s"]));
        assert_eq!(instance.line().await, format!("/services/orders/{id} {id}"));
        self.instances.push((instance, serving));
    }

    /// Removes the first instance by a signal, and ends its web server.
    async fn end(&mut self, signal: Signal) {
        let (instance, serving) = self.instances.remove(0);
        instance.stop(signal).await;
        serving.abort();
    }
}

/// Waits until exactly these instances answer requests to the proxy.
async fn until_served(address: &str, wanted: &[&str]) {
    let answers = async || {
        let mut answers = BTreeSet::new();
        for _ in 0..4 * IDS.len() {
            answers.insert(get(address, "/").await.unwrap_or_else(|error| error.to_string()));
        }
        answers
    };
    let wanted = wanted.iter().map(|id| (*id).to_owned()).collect();
    eventually(PATIENCE, answers, |answers: &BTreeSet<String>| *answers == wanted).await.unwrap();
}

/// A proxy's files, and how `docent discover` writes one of them and reloads the proxy.
struct Setup {
    /// File that `docent` writes.
    file: &'static str,
    /// Options of `docent discover`.
    list: &'static [&'static str],
    /// File with the rest of the configuration, and its text for an address to listen on.
    config: (&'static str, fn(&str) -> String),
    /// Command that starts the proxy in the foreground.
    start: &'static [&'static str],
}

const NGINX: Setup = Setup {
    file: "orders.conf",
    list: &[
        "--format=server {host}:{port};",
        "--keep-last",
        "--exec",
        "nginx",
        "-p",
        ".",
        "-c",
        "nginx.conf",
        "-s",
        "reload",
    ],
    config: ("nginx.conf", |address| {
        format!(
            "daemon off; worker_processes 1; pid nginx.pid; error_log error.log;
            events {{}}
            http {{
                access_log off;
                client_body_temp_path a; proxy_temp_path b; fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;
                upstream orders {{ include orders.conf; }}
                server {{ listen {address}; location / {{ proxy_pass http://orders; }} }}
            }}"
        )
    }),
    start: &["nginx", "-p", ".", "-c", "nginx.conf"],
};

const HAPROXY: Setup = Setup {
    file: "orders.cfg",
    list: &[
        "--header=backend orders",
        "--format=server {id} {host}:{port} check",
        "--keep-last",
        "--exec",
        "sh",
        "-c",
        // What `systemctl reload haproxy` does.
        "kill -USR2 $(cat haproxy.pid)",
    ],
    config: ("haproxy.cfg", |address| {
        format!(
            "defaults\n mode http\n timeout connect 1s\n timeout client 10s\n timeout server 10s\n\
             frontend shop\n bind {address}\n default_backend orders\n"
        )
    }),
    start: &["haproxy", "-W", "-db", "-p", "haproxy.pid", "-f", "haproxy.cfg", "-f", "orders.cfg"],
};

/// Starts three instances, the command that lists them, and then the proxy. Follows a kill, the end of all
/// instances and a new one.
async fn passes_requests_on(backend: Backend, setup: Setup) {
    let server = backend.start().await;
    let folder = tempfile::tempdir().unwrap();
    let port = Port::claim().unwrap();
    let address = port.connect_string();
    let mut fleet = Fleet { connect: servers(&server), services: JoinSet::new(), instances: Vec::new() };
    for id in IDS {
        fleet.add(id).await;
    }
    let write = ["discover", "orders", "-o", "hostport", "--write", setup.file];
    let arguments = write.iter().chain(setup.list);
    let follower = Running::spawn(docent(&fleet.connect, arguments).current_dir(folder.path()));
    let list = folder.path().join(setup.file);
    eventually(PATIENCE, async || list.exists(), |exists| *exists).await.unwrap();
    let (config, text) = setup.config;
    fs::write(folder.path().join(config), text(&address)).unwrap();
    let _proxy = Proxy::start(setup.start, folder.path());
    until_served(&address, &IDS).await;

    fleet.end(Signal::KILL).await;
    until_served(&address, &IDS[1..]).await;
    fleet.end(Signal::TERM).await;
    until_served(&address, &IDS[2..]).await;
    // The proxy avoids the instance that has ended before the list does.
    let read = async || fs::read_to_string(&list).unwrap();
    let last = eventually(PATIENCE, read, |list| list.matches("127.0.0.1").count() == 1).await.unwrap();
    // The last list stays, so that the proxy keeps a valid configuration.
    fleet.end(Signal::TERM).await;
    assert_eq!(read().await, last);
    fleet.add("one").await;
    until_served(&address, &IDS[..1]).await;
    fleet.end(Signal::TERM).await;
    assert_eq!(follower.stop(Signal::TERM).await, 143);
}

both_backends_in_real_time! {
    async fn nginx_passes_requests_on_through_a_kill_and_without_instances(backend: Backend) {
        passes_requests_on(backend, NGINX).await;
    }

    async fn haproxy_passes_requests_on_through_a_kill_and_without_instances(backend: Backend) {
        passes_requests_on(backend, HAPROXY).await;
    }
}
