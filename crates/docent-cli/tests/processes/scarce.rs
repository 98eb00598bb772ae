//! Environments that lack something: descriptors, `/dev`, an init process.

use crate::keeper::started_by;
use crate::process::{PATIENCE, is_alive, until_dead};
use crate::run::{Run, command, run, servers};
use docent::server::Server;
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::geteuid;
use std::fs;
use tokio::process::Command;

/// A job that leaves the group of its command and ignores requests to stop, and a command that then takes all
/// free descriptors away from docent.
const STARVE: &str = "setsid bash -c \"trap '' TERM INT; echo \\$\\$; while :; do sleep 0.02; done\" & \
                      free=0; while test -e /proc/$PPID/fd/$free; do free=$((free + 1)); done; \
                      read -r _; prlimit --pid $PPID --nofile=$free:";

both_backends_in_real_time! {
    async fn a_lock_is_not_released_while_it_is_unknown_which_processes_run(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("stderr");
        let words = ["lock", "/a", "--kill-after", "300ms", "--", "bash", "-c", STARVE];
        let mut docent = command(&connect, words);
        docent.stdin(std::process::Stdio::piped()).stderr(fs::File::create(&log).unwrap());
        let mut holder = Run::of(&mut docent);
        let job = holder.number().await;
        holder.write("\n").await;
        let remarks = async || fs::read_to_string(&log).unwrap();
        let cannot = "cannot list the processes of the command: Too many open files";
        eventually(PATIENCE, remarks, |remarks| remarks.contains(cannot)).await.unwrap();
        assert!(is_alive(job));
        assert_eq!(run(&connect, ["lock", "--nonblock", "/a", "--", "true"]).await.code, 75);
        let id = holder.id().to_string();
        let enough = Command::new("prlimit").args(["--pid", &id, "--nofile=1024:"]).status().await.unwrap();
        assert!(enough.success());
        assert_eq!(holder.end().await.code, 0);
        until_dead(job).await;
        assert_eq!(run(&connect, ["lock", "--nonblock", "/a", "--", "true"]).await.code, 0);
    }

    async fn the_first_process_of_a_container_collects_orphans_also_without_a_command(backend: Backend) {
        let server = backend.start().await;
        // The shell leaves an orphan, and becomes docent.
        let script = "(sleep 0.5 &); exec \"$0\" \"$@\"";
        let unshare = [unshare(), vec!["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]].concat();
        let mut holder = started_by("unshare", &unshare, &command(&servers(&server), ["lock", "/a"]));
        assert!(holder.line().await.starts_with("/a "));
        let [docent] = children(holder.id())[..] else { panic!("unshare has one child") };
        eventually(PATIENCE, async || children(docent), Vec::is_empty).await.unwrap();
        assert!(is_alive(docent));
    }
}

/// Returns the options by which this user may create namespaces.
fn unshare() -> Vec<&'static str> {
    if geteuid().is_root() { Vec::new() } else { vec!["--user", "--map-root-user"] }
}

/// Returns the children of a process, with those that have ended and were not collected.
fn children(process: i32) -> Vec<i32> {
    let list = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    list.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

#[tokio::test]
async fn no_device_is_needed_to_run_a_command() {
    let server = Server::start().await.unwrap();
    let hide = "mount -t tmpfs none /dev && exec \"$0\" \"$@\"";
    let unshare = [unshare(), vec!["--mount", "sh", "-c", hide]].concat();
    let script = "test ! -e /dev/null && echo held";
    for words in [&["lock", "/a"][..], &["elect", "/e", "--max-failures", "1"]] {
        let docent = command(server.connect_string(), words.iter().chain(&["--", "sh", "-c", script]));
        let mut run = started_by("unshare", &unshare, &docent);
        assert_eq!(run.line().await, "held");
        if words[0] == "lock" {
            assert_eq!(run.end().await.code, 0);
        }
    }
}

#[tokio::test]
async fn only_an_editor_needs_a_folder_for_files_and_the_error_names_it() {
    let server = Server::start().await.unwrap();
    let connect = server.connect_string();
    assert_eq!(run(connect, ["config", "set", "/limits", "7"]).await.code, 0);
    let hide = "mount -t tmpfs -o ro none /dev/shm && exec \"$0\" \"$@\"";
    let unshare = [unshare(), vec!["--mount", "--kill-child", "--fork", "sh", "-c", hide]].concat();
    let without = |words: &[&str]| {
        let mut docent = command(connect, words);
        docent.env("TMPDIR", "/no/such/folder").env("EDITOR", "true");
        started_by("unshare", &unshare, &docent)
    };
    let register =
        ["register", "orders", "--address", "10.0.0.7", "--port", "80", "--", "sh", "-c", "echo up; read x"];
    let mut announced = Run::of(command(connect, register).stdin(std::process::Stdio::piped()));
    assert_eq!(announced.line().await, "up");
    let mut found = without(&["discover", "orders", "--exec", "cat"]);
    assert_eq!(found.line().await, "10.0.0.7:80");
    let mut read = without(&["config", "watch", "/limits", "--", "sh", "-c", "cat; echo"]);
    assert_eq!(read.line().await, "7");
    let edited = without(&["config", "edit", "/limits"]).end().await;
    assert_eq!(edited.code, 1, "{edited:?}");
    for named in ["/no/such/folder: ", "/dev/shm: ", "TMPDIR"] {
        assert!(edited.stderr.contains(named), "{edited:?}");
    }
}

#[tokio::test]
async fn a_limit_of_open_files_that_is_too_low_is_named() {
    let server = Server::start().await.unwrap();
    let mut named = 0;
    for files in 5..30 {
        let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        for words in [&["ls"][..], &["lock", "--timeout", "2s", "/a", "--", "true"]] {
            let docent = command(server.connect_string(), words);
            let ended = started_by("bash", &["-c", &limited], &docent).end().await;
            assert!(!ended.stderr.contains("panicked"), "{files} {words:?}: {ended:?}");
            if ended.stderr.contains(&format!("the limit {files} of open files")) {
                assert_eq!(ended.code, 1, "{ended:?}");
                named += 1;
            } else {
                assert!(files > 10, "{files} {words:?}: {ended:?}");
            }
        }
    }
    assert!(named >= 12);
}
