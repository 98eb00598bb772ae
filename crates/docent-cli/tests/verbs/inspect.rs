//! `docent inspect`, `docent ls`, `docent revoke` and `docent break`.

use crate::docent_command::{Ended, Running, run, servers};
use docent::client::ClientBuilder;
use docent::node::CreateMode;
use docent::{Client, Mutex, Queue, Semaphore};
use docent_battery::{Backend, both_backends};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

const REPORT: &str = "/locks/report";
const PATIENCE: Duration = Duration::from_secs(15);

fn builder(connect: &str) -> ClientBuilder {
    Client::builder(connect).server_tick(Duration::from_millis(200))
}

/// The lines of `ls`, each cut at spaces.
fn rows(ended: &Ended) -> Vec<Vec<&str>> {
    ended.stdout.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

both_backends! {
    async fn holder_and_waiters_of_a_lock_are_shown_with_their_owners(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).label("nightly").connect().await.unwrap();
        let mutex = Mutex::new(&client, REPORT).unwrap();
        let guard = mutex.acquire().await.unwrap();
        let waiter = tokio::spawn(Mutex::new(&client, REPORT).unwrap().acquire());
        let both = async || mutex.participants().await.unwrap().len();
        docent_testkit::eventually(PATIENCE, both, |count| *count == 2).await.unwrap();

        let report = run(&connect, ["inspect", REPORT, "-o", "json"]).await.ok().json();
        assert_eq!((&report[0]["kind"], &report[0]["path"]), (&"mutex".into(), &REPORT.into()), "{report:?}");
        let table = run(&connect, ["inspect", REPORT]).await.ok().stdout;
        assert!(table.starts_with("/locks/report: mutex"), "{table}");
        let line = |state: &str| table.lines().find(|line| line.starts_with(state)).unwrap().to_owned();
        assert!(line("holds").contains(&format!("fence {}", guard.fence())), "{table}");
        assert!(line("waits").contains("waits for "), "{table}");
        assert!(line("holds").contains("nightly"), "{table}");
        waiter.abort();
        client.close().await;
    }

    async fn what_others_wrote_does_not_steer_the_terminal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let name = "_c_274ea99d-ba87-4def-bd24-7d1929098c6d-lock-0000000000";
        client.create(&format!("{REPORT}/{name}"), "host-7\u{1b}[2J", CreateMode::Ephemeral).await.unwrap();
        for arguments in [&["inspect", REPORT][..], &["ls"], &["break", REPORT, "--yes"]] {
            let ended = run(&connect, arguments).await.ok();
            let shown = "host-7\\x1b[2J";
            assert!(ended.stdout.contains(shown) || ended.stderr.contains(shown), "{ended:?}");
            assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:?}");
        }
        client.close().await;
    }

    async fn what_others_wrote_at_length_is_shortened(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let name = "_c_274ea99d-ba87-4def-bd24-7d1929098c6d-lock-0000000000";
        client.create(&format!("{REPORT}/{name}"), "ä".repeat(100_000), CreateMode::Ephemeral).await.unwrap();
        for arguments in [&["inspect", REPORT][..], &["ls"]] {
            let ended = run(&connect, arguments).await.ok();
            assert!(ended.stdout.contains("äää...") && ended.stdout.len() < 3_000, "{}", ended.stdout.len());
        }
        client.close().await;
    }

    async fn a_path_without_a_node_is_told_as_absent(backend: Backend) {
        let server = backend.start().await;
        let ended = run(&servers(&server), ["inspect", "--read-only", "/none"]).await.ok();
        assert_eq!(ended.stdout, "/none: absent\n");
    }

    async fn recipes_are_listed_by_kind_and_root(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let _guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        let _permit = Semaphore::new(&client, "/limits/export", 2).unwrap().acquire().await.unwrap();
        Queue::<u32>::new(&client, "/queues/jobs").unwrap().put(&7).await.unwrap();

        let locks = run(&connect, ["ls", "locks"]).await.ok();
        let paths: Vec<_> = rows(&locks).iter().map(|row| (row[0].to_owned(), row[1].to_owned())).collect();
        let known = [("/limits/export", "semaphore"), (REPORT, "mutex")];
        assert_eq!(paths, known.map(|(path, kind)| (path.to_owned(), kind.to_owned())));
        assert!(locks.stdout.contains("held by ") && locks.stdout.contains("0 waiting"), "{locks:?}");
        let queues = run(&connect, ["ls", "queues", "/queues", "-o", "json"]).await.ok().json();
        assert_eq!((queues.len(), &queues[0]["path"], &queues[0]["depth"]), (1, &"/queues/jobs".into(), &1.into()));
        assert_eq!(rows(&run(&connect, ["ls", "/queues"]).await.ok()).len(), 1);
        assert_eq!(run(&connect, ["ls", "lock"]).await.code, 2);
        let few = run(&connect, ["ls", "--nodes", "2"]).await.ok();
        assert!(few.stderr.contains("left out by the limits"), "{few:?}");
        client.close().await;
    }

    async fn dead_letters_are_shown_with_their_reasons(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let jobs = Queue::<u32>::new(&client, "/queues/jobs").unwrap();
        jobs.put(&7).await.unwrap();
        jobs.take().await.unwrap().reject("no such customer\u{1b}[2J").await.unwrap();
        let ended = run(&connect, ["inspect", "/queues/jobs"]).await.ok();
        let dead = ended.stdout.lines().find(|line| line.starts_with("dead ")).unwrap();
        assert!(dead.contains("letter-0000000000") && !dead.contains('\u{1b}'), "{ended:?}");
        assert!(dead.contains("rejected: no such customer") && dead.contains("was item-"), "{ended:?}");
        let report = &run(&connect, ["inspect", "/queues/jobs", "-o", "json"]).await.ok().json()[0];
        let letter = &report["dead_letters"][0];
        assert_eq!((&letter["reason"], &letter["size"].is_u64()), (&"rejected".into(), &true), "{report}");
        assert!(letter["since_ms"].is_u64(), "{report}");
        client.close().await;
    }

    async fn a_watch_prints_a_report_after_each_change(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let mutex = Mutex::new(&client, REPORT).unwrap();
        let guard = mutex.acquire().await.unwrap();
        let mut watch = Running::start(&connect, ["inspect", "--watch", "-o", "json", REPORT]);
        let report: Value = serde_json::from_str(&watch.line().await).unwrap();
        assert_eq!(report["contenders"][0]["holds"], true, "{report}");
        guard.release().await.unwrap();
        let mut contenders = report["contenders"].clone();
        while contenders.as_array().is_some_and(|all| !all.is_empty()) {
            contenders = serde_json::from_str::<Value>(&watch.line().await).unwrap()["contenders"].clone();
        }
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        client.close().await;
    }

    async fn a_list_is_printed_again_when_a_recipe_comes(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        client.create("/limit", "7", CreateMode::Persistent).await.unwrap();
        // A look at all after that time would come too late.
        let mut watch = Running::start(&connect, ["ls", "--watch", "--every", "1h", "-o", "json"]);
        let first: Value = serde_json::from_str(&watch.line().await).unwrap();
        assert_eq!(first["path"], "/limit", "{first}");
        let _guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        let mut path = String::new();
        while path != REPORT {
            let report: Value = serde_json::from_str(&watch.line().await).unwrap();
            report["path"].as_str().unwrap().clone_into(&mut path);
        }
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        client.close().await;
    }

    async fn a_holder_can_be_asked_to_leave(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        run(&connect, ["revoke", REPORT]).await.ok();
        timeout(PATIENCE, guard.revoked()).await.expect("it is asked");
        guard.release().await.unwrap();
        let nobody = run(&connect, ["revoke", REPORT]).await;
        assert_eq!((nobody.code, nobody.stderr.contains("nobody holds")), (1, true), "{nobody:?}");
        client.create("/plain", "x", CreateMode::Persistent).await.unwrap();
        assert_eq!(run(&connect, ["revoke", "/plain"]).await.code, 1);
        client.close().await;
    }

    async fn a_holder_is_deleted_only_after_a_yes_and_learns_of_it(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        let unasked = run(&connect, ["break", REPORT]).await;
        assert_eq!(unasked.code, 2, "{unasked:?}");
        let session = format!("session {:#x}", client.session_id().unwrap());
        assert!(unasked.stderr.contains(&session) && unasked.stderr.contains("holds for"), "{unasked:?}");
        assert!(guard.is_held());
        run(&connect, ["break", REPORT, "--yes"]).await.ok();
        timeout(PATIENCE, guard.lost()).await.expect("it is told");
        client.close().await;
    }

    async fn the_claim_of_a_consumer_that_hangs_can_be_broken(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        run(&connect, ["queue", "put", "/q", "work"]).await.ok();
        let words = ["queue", "take", "/q", "--", "sh", "-c", "echo at it; sleep 1000"];
        let mut hanging = Running::start(&connect, words);
        assert_eq!(hanging.line().await, "at it");
        let broken = run(&connect, ["break", "/q", "--yes"]).await.ok();
        assert!(broken.stderr.contains("/q/claims/"), "{broken:?}");
        let words = ["queue", "take", "/q", "--wait", "10s", "--", "sh", "-c", "echo $DOCENT_DELIVERIES"];
        assert_eq!(run(&connect, words).await.ok().stdout, "2\n");
        assert_eq!(hanging.end().await, 76);
    }

    async fn a_permit_is_deleted_by_its_name(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let semaphore = Semaphore::new(&client, "/limits/export", 2).unwrap();
        let (one, two) = (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
        let several = run(&connect, ["break", "/limits/export", "--yes"]).await;
        assert_eq!(several.code, 2, "several hold: {several:?}");
        let report = &run(&connect, ["inspect", "/limits/export", "-o", "json"]).await.ok().json()[0];
        let name = report["permits"][0]["name"].as_str().unwrap();
        run(&connect, ["break", "/limits/export", name, "--yes"]).await.ok();
        let lost = async { tokio::select! { _ = one.lost() => (), _ = two.lost() => () } };
        timeout(PATIENCE, lost).await.expect("it is told");
        assert_eq!(run(&connect, ["break", "/limits/export", name, "--yes"]).await.code, 1);
        client.close().await;
    }
}
