//! `docent discover` for other programs: `-o file-sd`, `--format` and `--write`.

use crate::docent_command::{PATIENCE, Running, run, servers};
use docent::discovery::{Instance, Registry};
use docent::{Client, CreateMode};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Prints its input as one line that ends with a full stop.
const HOOK: [&str; 4] = ["--exec", "sh", "-c", "tr '\\n' ' '; echo ."];

fn instance(id: &str, address: &str) -> Instance {
    Instance::new("orders", address, 8080).id(id)
}

/// Writes an instance that the library refuses to announce, as other programs may.
async fn forge(client: &Client, node: &str, instance: Instance) {
    let data = serde_json::to_vec(&instance.payload(json!(null))).unwrap();
    client.create(&format!("/services/orders/{node}"), data, CreateMode::Persistent).await.unwrap();
}

async fn until_content(path: &Path, wanted: &str) {
    let read = async || fs::read_to_string(path).unwrap_or_default();
    eventually(PATIENCE, read, |content| content == wanted).await.unwrap();
}

both_backends_in_real_time! {
    async fn instances_are_targets_for_prometheus(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let list = ["discover", "orders", "-o", "file-sd"];
        let none = run(&connect, list).await;
        assert_eq!((none.code, &*none.stdout), (66, "[]\n"), "the service does not exist");
        let one = instance("one", "::1").ssl_port(8443).payload(json!({"zone": "a\u{1b}[2J\n"}));
        let _one = registry.register(one).await.unwrap();
        let _two = registry.register(instance("two", "10.0.0.8").enabled(false)).await.unwrap();
        forge(&client, "forged", instance("forged", "10.6.6.6:1/x")).await;
        let listed = run(&connect, list).await.ok();
        let labels = json!({
            "__meta_docent_service": "orders",
            "__meta_docent_id": "one",
            "__meta_docent_scheme": "https",
            "__meta_docent_payload_zone": "a\u{1b}[2J\n",
        });
        let groups: Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(groups, json!([{"targets": ["[::1]:8443"], "labels": labels}]));
        assert!(!listed.stdout.contains('\u{1b}'), "{listed:?}");
        assert!(listed.stderr.contains("skipped instance \"forged\""), "{listed:?}");
        client.close().await;
    }

    async fn a_line_of_a_template_cannot_be_forged(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let _good = registry.register(instance("good", "10.0.0.7")).await.unwrap();
        forge(&client, "a;b", instance("good", "10.6.6.6")).await;
        forge(&client, "address", instance("good", "10.6.6.6:1;\nserver 10.6.6.7")).await;
        forge(&client, "port", Instance::new("orders", "10.6.6.6", 0)).await;
        let format = |template| ["discover", "orders", "-o", "hostport", "--format", template];
        let lines = run(&connect, format("server {id} {host}:{port} check")).await.ok();
        assert_eq!(lines.stdout, "server good 10.0.0.7:8080 check\n", "{lines:?}");
        for skipped in ["a;b", "address", "port"] {
            assert!(lines.stderr.contains(&format!("skipped instance {skipped:?}: its ")), "{lines:?}");
        }
        let header = ["--header", "backend orders"];
        let lines = run(&connect, format("server {id}").iter().chain(&header)).await.ok();
        assert_eq!(lines.stdout, "backend orders\nserver good\n", "{lines:?}");
        let lines = run(&connect, format("server {host}:{port};")).await.ok();
        assert_eq!(lines.stdout, "server 10.6.6.6:8080;\nserver 10.0.0.7:8080;\n", "{lines:?}");
        client.close().await;
    }

    async fn the_hook_runs_after_each_start_and_replacement_only(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders");
        let arguments = ["discover", "orders", "-o", "hostport", "--write", path.to_str().unwrap()];
        let start = || Running::start(&connect, arguments.iter().chain(&HOOK));
        let _one = registry.register(instance("one", "10.0.0.7")).await.unwrap();
        let mut first = start();
        assert_eq!(first.line().await, "10.0.0.7:8080 .");
        assert_eq!(fs::read_to_string(&path).unwrap(), "10.0.0.7:8080\n");
        assert_eq!(first.stop(Signal::TERM).await, 143);

        // The first run might have been killed between replacement and hook.
        let mut second = start();
        assert_eq!(second.line().await, "10.0.0.7:8080 .");
        let disabled = registry.register(instance("off", "10.0.0.9").enabled(false)).await.unwrap();
        disabled.deregister().await.unwrap();
        let _two = registry.register(instance("two", "10.0.0.8")).await.unwrap();
        assert_eq!(second.line().await, "10.0.0.7:8080 10.0.0.8:8080 .", "no hook ran without a replacement");
        assert_eq!(fs::read_to_string(&path).unwrap(), "10.0.0.7:8080\n10.0.0.8:8080\n");
        assert_eq!(second.stop(Signal::TERM).await, 143);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        client.close().await;
    }

    async fn a_failed_write_is_reported_and_repeated(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing/orders.json");
        let arguments = ["discover", "orders", "-o", "file-sd", "--write", path.to_str().unwrap()];
        let mut follower = Running::start(&connect, arguments.iter().chain(&HOOK));
        let mut remarks = follower.remarks();
        for _ in 0..2 {
            let remark = remarks.until("cannot write").await;
            assert!(remark.contains("missing/orders.json") && remark.contains("retrying"), "{remark}");
        }
        fs::create_dir(folder.path().join("missing")).unwrap();
        assert_eq!(follower.line().await, "[] .");
        assert_eq!(fs::read_to_string(&path).unwrap(), "[]\n");
        assert_eq!(follower.stop(Signal::TERM).await, 143);
    }

    async fn the_last_list_is_kept_on_request_only(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (kept, plain) = (folder.path().join("kept"), folder.path().join("plain"));
        let arguments = |path| ["discover", "orders", "-o", "hostport", "--write", path];
        let keep = arguments(kept.to_str().unwrap());
        let mut keeper = Running::start(&connect, keep.iter().chain(&["--keep-last"]));
        let mut remarks = keeper.remarks();
        let other = Running::start(&connect, arguments(plain.to_str().unwrap()));
        eventually(PATIENCE, async || kept.exists(), |exists| *exists).await.unwrap();
        let one = registry.register(instance("one", "10.0.0.7")).await.unwrap();
        until_content(&kept, "10.0.0.7:8080\n").await;
        until_content(&plain, "10.0.0.7:8080\n").await;
        remarks.until("keeping").await; // there was no file yet
        one.deregister().await.unwrap();
        remarks.until("keeping").await;
        until_content(&plain, "").await;
        let _two = registry.register(instance("two", "10.0.0.8")).await.unwrap();
        until_content(&plain, "10.0.0.8:8080\n").await;
        until_content(&kept, "10.0.0.8:8080\n").await;
        assert_eq!(keeper.stop(Signal::TERM).await, 143);
        assert_eq!(other.stop(Signal::TERM).await, 143);
        client.close().await;
    }

    async fn the_file_stays_during_an_outage(backend: Backend) {
        let server = backend.start_own().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let registry = Registry::new(&client, "/services").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders");
        let _one = registry.register(instance("one", "10.0.0.7")).await.unwrap();
        let arguments = ["discover", "orders", "-v", "-o", "hostport", "--write", path.to_str().unwrap()];
        let mut follower = Running::start(&connect, arguments.iter().chain(&HOOK));
        let mut remarks = follower.remarks();
        assert_eq!(follower.line().await, "10.0.0.7:8080 .");
        server.stop().await;
        remarks.until("connection lost").await;
        assert_eq!(fs::read_to_string(&path).unwrap(), "10.0.0.7:8080\n");
        server.start_again().await;
        let _two = registry.register(instance("two", "10.0.0.8")).await.unwrap();
        assert_eq!(follower.line().await, "10.0.0.7:8080 10.0.0.8:8080 .", "no other list came in between");
        assert_eq!(follower.stop(Signal::TERM).await, 143);
        client.close().await;
    }
}

#[tokio::test]
async fn options_that_do_not_fit_together_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let cases: [(&[&str], &str); 9] = [
        (&["orders", "--write", "f"], "--write needs `-o hostport` or `-o file-sd`"),
        (&["orders", "-o", "json", "--write", "f"], "--write needs `-o hostport` or `-o file-sd`"),
        (&["orders", "-o", "file-sd", "--write", folder], "must be a file, not a folder"),
        (&["orders", "-o", "file-sd", "--format", "{host}"], "--format needs `-o hostport`"),
        (
            &["orders", "-o", "hostport", "--format", "{hots}"],
            "\"{hots}\" must be one of {host}, {port} and {id}",
        ),
        (&["orders", "--header", "a"], "--header needs `-o hostport`"),
        (&["orders", "-o", "hostport", "--keep-last"], "--write"),
        (&["-o", "hostport", "--write", "f"], "SERVICE"),
        (&["-o", "file-sd"], "--output file-sd needs a SERVICE"),
    ];
    for (arguments, rule) in cases {
        let ended = run("127.0.0.1:1", ["discover"].iter().chain(arguments)).await;
        assert!(ended.code == 2 && ended.stderr.contains(rule), "{arguments:?}: {ended:?}");
    }
}
