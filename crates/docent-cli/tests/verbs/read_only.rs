//! Reads from servers that have lost their quorum.

use crate::docent_command::{PATIENCE, Running, run};
use docent::config::Config;
use docent::discovery::{Instance, Registry};
use docent::{Client, Mutex, Semaphore};
use docent_battery::{
    Backend, RealEnsemble, RealServer, ServerOptions, TestServer, both_backends_in_real_time,
};
use docent_testkit::eventually;
use futures_util::future::join_all;
use rustix::process::Signal;
use std::time::Duration;

/// Servers that can lose their quorum.
enum Site {
    Embedded(TestServer),
    Real(RealEnsemble),
}

impl Site {
    async fn start(backend: Backend) -> Self {
        match backend {
            Backend::Real => {
                let options = ServerOptions::default().tick(Duration::from_millis(500)).read_only_mode(true);
                Self::Real(RealEnsemble::start_with(options).await.unwrap())
            }
            _ => Self::Embedded(backend.start_own().await),
        }
    }

    fn connect(&self) -> String {
        match self {
            Self::Embedded(server) => server.address().to_string(),
            Self::Real(ensemble) => ensemble.connect_string(),
        }
    }

    fn lose_quorum(&self) {
        match self {
            Self::Embedded(server) => server.as_embedded().unwrap().set_read_only(true),
            Self::Real(ensemble) => ensemble.servers()[1..].iter().for_each(RealServer::stop),
        }
    }

    async fn regain_quorum(&self) {
        match self {
            Self::Embedded(server) => server.as_embedded().unwrap().set_read_only(false),
            Self::Real(ensemble) => {
                let started = join_all(ensemble.servers()[1..].iter().map(RealServer::start_again)).await;
                started.into_iter().for_each(|started| started.unwrap());
            }
        }
    }
}

const LABEL: &str = "the server has lost its quorum: what it shows may be out of date";

/// Verbs that read, each with a text that it prints.
const READS: [(&[&str], &str); 8] = [
    (&["ls"], "/locks/a"),
    (&["ls", "locks", "-o", "json"], "/locks/a"),
    (&["inspect", "/locks/a"], "nightly"),
    (&["sessions"], "holds /locks/a"),
    (&["config", "get", "/flags/a"], "{\"on\":true}"),
    (&["config", "ls", "/flags"], "/flags/a"),
    (&["discover", "orders", "-o", "hostport"], "10.0.0.7:8080"),
    (&["discover", "orders", "--at-least", "1"], "10.0.0.7"),
];

both_backends_in_real_time! {
    async fn reads_are_served_without_a_quorum_if_requested_and_labelled(backend: Backend) {
        let site = Site::start(backend).await;
        let connect = site.connect();
        let client = Client::builder(&connect).label("nightly").connect().await.unwrap();
        let guard = Mutex::new(&client, "/locks/a").unwrap().acquire().await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let _one = registry.register(Instance::new("orders", "10.0.0.7", 8080)).await.unwrap();
        Config::<serde_json::Value>::new(&client, "/flags/a").unwrap().publish(&serde_json::json!({"on": true})).await.unwrap();
        for (verb, shown) in READS {
            let ended = run(&connect, [&["--read-only"], verb].concat()).await.ok();
            assert!(ended.stdout.contains(shown) && !ended.stderr.contains("quorum"), "{verb:?}: {ended:?}");
        }

        let mut watch = Running::start(&connect, ["ls", "--watch", "--read-only", "-o", "json", "/locks"]);
        let mut remarks = watch.remarks();
        assert!(watch.line().await.contains("/locks/a"));
        site.lose_quorum();
        // The list is followed on the server that has lost its quorum.
        let mut remarked = Vec::new();
        let has = |remarked: &[String], text| remarked.iter().any(|line| line.contains(text));
        while !(has(&remarked, LABEL) && has(&remarked, "connected again")) {
            remarked.push(remarks.until("date").await);
        }
        for (verb, shown) in READS {
            let ended = run(&connect, [&["--read-only"], verb].concat()).await.ok();
            assert!(ended.stdout.contains(shown) && ended.stderr.contains(LABEL), "{verb:?}: {ended:?}");
            assert_eq!(ended.stderr.matches("quorum").count(), 1, "{ended:?}");
        }
        // What the server shows proves nothing.
        let waited = run(&connect, ["--read-only", "wait", "/locks/none", "--for", "free", "--wait", "5s"]).await;
        assert_eq!(waited.code, 69, "{waited:?}");
        // Nobody reads there without asking for it.
        let refused = run(&connect, ["--timeout", "3s", "ls"]).await;
        assert_eq!(refused.code, 69, "{refused:?}");

        site.regain_quorum().await;
        remarks.until("connected to a server with a quorum again").await;
        // The outage may have outlasted the lease.
        drop(guard);
        let other = Client::connect(&connect).await.unwrap();
        let _permit = Semaphore::new(&other, "/locks/b", 2).unwrap().acquire().await.unwrap();
        while !watch.line().await.contains("/locks/b") {}
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        client.close().await;
        other.close().await;
    }

    async fn a_client_that_only_reads_writes_nothing(backend: Backend) {
        let server = backend.start().await;
        let connect = crate::docent_command::servers(&server);
        let writes: [&[&str]; 6] = [
            &["lock", "/a", "--", "true"],
            &["config", "set", "/b", "1"],
            &["queue", "put", "/c", "1"],
            &["elect", "/d", "--", "true"],
            &["register", "orders", "10.0.0.7:80", "--", "true"],
            &["config", "import", "/e", "--from", "/dev/stdin"],
        ];
        for verb in writes {
            let ended = run(&connect, [&["--read-only"], verb].concat()).await;
            assert!(ended.code == 2, "{verb:?}: {ended:?}");
        }
        let doctor = run(&connect, ["--read-only", "doctor"]).await;
        assert!(doctor.stdout.contains("not measured, because that takes a write"), "{doctor:?}");
        let client = Client::connect(&connect).await.unwrap();
        let nodes = async || client.children("/").await.unwrap().names.len();
        eventually(PATIENCE, nodes, |count| *count == 0).await.unwrap();
        client.close().await;
    }
}
