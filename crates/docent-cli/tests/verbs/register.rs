//! `docent register`.

use crate::docent_command::{PATIENCE, Running, docent, end, run, servers};
use docent::node::{Acl, Permissions};
use docent::{Client, ErrorKind};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

const ORDERS: [&str; 9] =
    ["register", "orders", "--address", "10.0.0.7", "--port", "8080", "--id", "one", "-q"];

/// Returns the instances of the service.
async fn instances(connect: &str) -> Vec<Value> {
    let listed = run(connect, ["discover", "orders", "-o", "json"]).await;
    // The service does not exist before its first instance.
    if listed.code == 66 { Vec::new() } else { listed.ok().json() }
}

/// Waits until the instance is announced as enabled or disabled, as given.
async fn until_enabled(connect: &str, enabled: bool) {
    let is = |all: &Vec<Value>| all.len() == 1 && (all[0]["state"] == "enabled") == enabled;
    eventually(PATIENCE, async || instances(connect).await, is).await.unwrap();
}

both_backends_in_real_time! {
    async fn an_instance_is_announced_until_a_signal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let more = ["--meta", "zone=a", "--weight", "3"];
        let mut run = Running::start(&connect, ORDERS.iter().chain(&more));
        assert_eq!(run.line().await, "/services/orders/one one");
        let all = instances(&connect).await;
        assert_eq!((&all[0]["payload"]["json"]["zone"], &all[0]["weight"]), (&"a".into(), &3.into()), "{all:?}");
        assert_eq!(run.stop(Signal::TERM).await, 0);
        assert!(instances(&connect).await.is_empty());
    }

    async fn an_address_that_callers_cannot_use_is_refused(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        for (address, rule) in [
            ("10.0.0.1:80", "must not contain a port, which is a separate argument"),
            ("0.0.0.0", "must be one that callers can reach"),
        ] {
            let refused = run(&connect, ["register", "orders", "--address", address, "--port", "80", "--", "true"]).await;
            assert_eq!(refused.code, 2, "{refused:?}");
            assert!(refused.stderr.contains(&format!("address {address:?} {rule}")), "{refused:?}");
        }
        assert!(instances(&connect).await.is_empty());
    }

    async fn an_instance_has_the_form_of_the_chosen_neighbour(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let more = ["--meta", "zone=a", "--neighbour", "spring-cloud"];
        let mut spring = Running::start(&connect, ORDERS.iter().chain(&more));
        assert_eq!(spring.line().await, "/services/orders/one one");
        let payload = instances(&connect).await[0]["payload"]["json"].clone();
        assert!(payload["@class"].as_str().unwrap().starts_with("org.springframework."), "{payload}");
        assert_eq!(payload["metadata"]["zone"], "a");

        // A payload of another form would hide both from Spring's callers.
        let plain = ["register", "orders", "--address", "10.0.0.8", "--port", "80", "--meta", "zone=a", "--", "true"];
        let refused = run(&connect, plain).await;
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains("--neighbour spring-cloud"), "{refused:?}");
        let unknown = run(&connect, ["register", "a", "--address", "h", "--port", "1", "--neighbour", "consul"]).await;
        assert_eq!(unknown.code, 2, "{unknown:?}");
        assert_eq!(spring.stop(Signal::TERM).await, 0);
        assert!(instances(&connect).await.is_empty());
    }

    async fn an_instance_lives_as_long_as_its_command(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let script = format!("{} discover orders -o hostport; exit 3", env!("CARGO_BIN_EXE_docent"));
        let ended = run(&connect, ORDERS.iter().chain(&["--", "sh", "-c", &script])).await;
        assert_eq!((ended.code, &*ended.stdout), (3, "10.0.0.7:8080\n"), "{ended:?}");
        assert!(instances(&connect).await.is_empty());
    }

    async fn waiting_for_an_id_of_another_session_is_reported(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut first = Running::start(&connect, ORDERS);
        assert_eq!(first.line().await, "/services/orders/one one");
        let mut second = docent(&connect, ORDERS.iter().filter(|word| **word != "-q")).spawn().unwrap();
        let mut message = BufReader::new(second.stderr.take().unwrap()).lines();
        let message = timeout(PATIENCE, message.next_line()).await.expect("docent must print a message").unwrap().unwrap();
        assert!(message.contains("waiting until /services/orders/one is free: session 0x"), "{message}");
        assert_eq!(first.stop(Signal::TERM).await, 0);
        until_enabled(&connect, true).await;
        second.kill().await.unwrap();
    }

    async fn an_instance_is_disabled_before_its_command_is_terminated(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let script = "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 0.02; done";
        let arguments = ["--drain", "1s", "--", "sh", "-c", script];
        let mut run = Running::start(&connect, ORDERS.iter().chain(&arguments));
        assert_eq!(run.line().await, "ready");
        until_enabled(&connect, true).await;
        run.signal(Signal::TERM);
        until_enabled(&connect, false).await;
        assert_eq!(run.line().await, "told");
        assert_eq!(run.end().await, 0);
        assert!(instances(&connect).await.is_empty());
    }

    async fn a_second_signal_ends_the_drain(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let script = "trap 'exit 3' TERM; while :; do sleep 0.02; done";
        for (command, code) in [(&["--", "sh", "-c", script][..], 3), (&[], 0)] {
            let run = Running::start(&connect, ORDERS.iter().chain(&["--drain", "1h"]).chain(command));
            until_enabled(&connect, true).await;
            run.signal(Signal::TERM);
            until_enabled(&connect, false).await;
            assert_eq!(run.stop(Signal::TERM).await, code);
            assert!(instances(&connect).await.is_empty());
        }
    }

    async fn a_reload_changes_nothing_about_an_instance(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        let well = folder.path().join("well");
        std::fs::write(&well, "").unwrap();
        let check = format!("test -e {}", well.display());
        let script = "trap 'echo again' HUP; echo ready; while :; do sleep 0.02; done";
        let arguments =
            ["--check", &check, "--every", "50ms", "--drain", "1h", "--", "sh", "-c", script];
        let mut run = Running::start(&connect, ORDERS.iter().chain(&arguments));
        assert_eq!(run.line().await, "ready");
        until_enabled(&connect, true).await;
        run.signal(Signal::HUP);
        assert_eq!(run.line().await, "again");
        std::fs::remove_file(&well).unwrap();
        until_enabled(&connect, false).await;
        std::fs::write(&well, "").unwrap();
        until_enabled(&connect, true).await;
        run.signal(Signal::TERM);
        until_enabled(&connect, false).await;
        run.signal(Signal::HUP);
        assert_eq!(run.line().await, "again", "the command receives the signal during the drain");
        assert_eq!(run.stop(Signal::TERM).await, 128 + 15, "a second signal must end the drain");
    }

    async fn an_instance_is_enabled_again_if_its_command_survives_the_signal(backend: Backend) {
        let outlive = async |more: &[&str]| {
            let server = backend.start().await;
            let connect = servers(&server);
            let script = "trap 'echo told' TERM; echo ready; while :; do sleep 0.02; done";
            let arguments = ["--drain", "10ms", "--", "sh", "-c", script];
            let mut run = Running::start(&connect, ORDERS.iter().chain(more).chain(&arguments));
            assert_eq!(run.line().await, "ready");
            until_enabled(&connect, true).await;
            run.signal(Signal::TERM);
            assert_eq!(run.line().await, "told");
            until_enabled(&connect, false).await;
            until_enabled(&connect, true).await;
        };
        tokio::join!(outlive(&[]), outlive(&["--check", "true", "--every", "50ms"]));
    }

    async fn a_health_check_decides_whether_an_instance_gets_work(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        let well = folder.path().join("well");
        let check = format!("test -e {}", well.display());
        let _run = Running::start(&connect, ORDERS.iter().chain(&["--check", &check, "--every", "50ms"]));
        until_enabled(&connect, false).await;
        std::fs::write(&well, "").unwrap();
        until_enabled(&connect, true).await;
        std::fs::remove_file(&well).unwrap();
        until_enabled(&connect, false).await;
    }

    async fn the_exit_code_of_a_command_counts_if_its_instance_cannot_be_deregistered(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let script = "echo ready; read line; exit 3";
        let arguments = ["--timeout", "2s", "register", "orders", "--address", "a", "--port", "1", "--", "sh", "-c", script];
        let mut child = docent(&connect, arguments).stdin(Stdio::piped()).spawn().unwrap();
        until_enabled(&connect, true).await;
        let permissions = Permissions::READ | Permissions::ADMIN;
        client.set_acl("/services/orders", [Acl::new(permissions, "world", "anyone")], None).await.unwrap();
        drop(child.stdin.take());
        let ended = end(child).await;
        assert!(ended.code == 3 && ended.stderr.contains("could not be deregistered"), "{ended:?}");
        // The instance was deleted with its session, and the empty container may have been deleted since.
        if let Err(error) = client.set_acl("/services/orders", [Acl::open_unsafe()], None).await {
            assert_eq!(error.kind(), ErrorKind::NoNode);
        }
        client.close().await;
    }

    async fn a_check_has_a_program_and_a_time(backend: Backend) {
        let server = backend.start().await;
        for wrong in [["--check", " ", "--every", "1s"], ["--check", "true", "--every", "0"]] {
            let ended = run(&servers(&server), ORDERS.iter().chain(&wrong).chain(&["--", "true"])).await;
            assert_eq!((ended.code, ended.stderr.contains("must ")), (2, true), "{ended:?}");
        }
    }

    async fn a_check_that_cannot_be_run_is_reported(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let loud = ORDERS.iter().filter(|argument| **argument != "-q");
        let mut child = docent(&connect, loud.chain(&["--check", "/no/such/check"])).spawn().unwrap();
        let mut message = String::new();
        let read = async { BufReader::new(child.stderr.take().unwrap()).read_line(&mut message).await };
        timeout(PATIENCE, read).await.unwrap().unwrap();
        assert!(message.contains("\"/no/such/check\" was not found"), "{message}");
    }

    async fn a_check_that_takes_too_long_is_killed_with_all_that_it_started(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let (script, started) = (file("check"), file("started"));
        let lines = "sleep 1000 & echo $! >started.new; mv started.new started; wait";
        std::fs::write(&script, format!("cd {}; {lines}", folder.path().display())).unwrap();
        let check = format!("sh {}", script.display());
        let _run = Running::start(&connect, ORDERS.iter().chain(&["--check", &check, "--every", "200ms"]));
        let read = async || std::fs::read_to_string(&started).unwrap_or_default();
        let sleeper = eventually(PATIENCE, read, |text| !text.is_empty()).await.unwrap();
        let path = format!("/proc/{}/stat", sleeper.trim());
        let is_alive = async || std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z "));
        eventually(PATIENCE, is_alive, |alive| !alive).await.unwrap();
    }

    async fn a_payload_is_read_from_a_file_and_must_be_json(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("payload.json");
        let payload = format!("@{}", file.display());
        let register = async |content: &str| {
            std::fs::write(&file, content).unwrap();
            let arguments = ["--payload", &payload, "--", env!("CARGO_BIN_EXE_docent"), "discover", "orders", "-o", "json"];
            end(docent(&connect, ORDERS.iter().chain(&arguments)).spawn().unwrap()).await
        };
        assert_eq!(register("{\"zone\": [1]}").await.ok().json()[0]["payload"]["json"]["zone"][0], 1);
        assert_eq!(register("{oops").await.code, 65);
    }
}

/// Makes this thread trace a process, so that its parent does not see its end before this thread ends.
#[cfg(target_os = "linux")]
fn hold(process: &str) {
    use nix::sys::ptrace::{Options, seize};
    seize(nix::unistd::Pid::from_raw(process.trim().parse().unwrap()), Options::empty()).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_killed_check_that_does_not_end_delays_nothing() {
    let server = docent::server::Server::start().await.unwrap();
    let connect = server.connect_string();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("check");
    // In one case the check is abandoned, and in the other it runs to the end.
    for (name, every) in [("given-up", "1s"), ("runs", "1h")] {
        let number = folder.path().join(name);
        let lines = format!("echo $$ >{0}.new; mv {0}.new {0}; exec sleep 1000", number.display());
        std::fs::write(&script, lines).unwrap();
        let check = format!("sh {}", script.display());
        let arguments = ["--check", &check, "--every", every, "--", "sh", "-c"];
        let command = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
        let loud = ORDERS.iter().filter(|word| **word != "-q");
        let mut child = docent(connect, loud.chain(&arguments).chain(&[command])).spawn().unwrap();
        let read = async || std::fs::read_to_string(&number).unwrap_or_default();
        hold(&eventually(PATIENCE, read, |text| !text.is_empty()).await.unwrap());
        if every == "1s" {
            let mut message = BufReader::new(child.stderr.as_mut().unwrap()).lines();
            let message = timeout(PATIENCE, message.next_line())
                .await
                .expect("docent must print a message")
                .unwrap()
                .unwrap();
            assert!(message.contains("took longer than 1s"), "{message}");
        }
        let mut ready = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        timeout(PATIENCE, ready.next_line()).await.expect("the command must be ready").unwrap();
        let id = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        kill_process(id, Signal::TERM).unwrap();
        assert_eq!(end(child).await.code, 7, "{every}");
    }
}
