//! `docent inspect`, `docent ls`, `docent revoke` and `docent break`.

use crate::docent_command::{Ended, PATIENCE, Running, run, servers};
use docent::client::ClientBuilder;
use docent::node::{Acl, CreateMode};
use docent::recipe::server_time;
use docent::{Client, Mutex, Queue, Semaphore};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

const REPORT: &str = "/locks/report";

fn builder(connect: &str) -> ClientBuilder {
    Client::builder(connect).server_tick(Duration::from_millis(200))
}

/// Returns the lines of `ls`, each split at spaces.
fn rows(ended: &Ended) -> Vec<Vec<&str>> {
    ended.stdout.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

both_backends_in_real_time! {
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

    async fn data_of_other_clients_cannot_control_the_terminal(backend: Backend) {
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

    async fn long_data_of_other_clients_is_shortened(backend: Backend) {
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

    async fn a_path_without_a_node_is_reported_as_absent(backend: Backend) {
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
        client.close().await;
    }

    async fn a_cut_list_has_complete_rows_a_remark_and_its_own_exit_code(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        for number in 0..20 {
            let ticket = format!("/locks/n{number:02}/_c_{number:032x}-lock-0000000000");
            client.create(&ticket, "10.0.0.7", CreateMode::Ephemeral).await.unwrap();
        }
        let cut = run(&connect, ["ls", "locks", "--nodes", "22"]).await;
        let shown = rows(&cut).len();
        assert!(cut.code == 74 && (1..20).contains(&shown), "{cut:?}");
        assert_eq!(cut.stdout.matches("held by 10.0.0.7").count(), shown, "each shown lock has its holder: {cut:?}");
        assert!(cut.stderr.contains("the list is incomplete") && cut.stderr.contains("raise --nodes 22"), "{cut:?}");
        let lines = run(&connect, ["ls", "locks", "--nodes", "22", "-o", "json"]).await;
        let last = lines.json().pop().unwrap();
        assert_eq!((lines.code, &last["cut"], last["left_out"]["nodes"].as_u64()), (74, &true.into(), Some(20 - shown as u64)));
        let shallow = run(&connect, ["ls", "--depth", "1"]).await;
        assert!(shallow.code == 74 && shallow.stderr.contains("raise --depth 1"), "{shallow:?}");
        assert_eq!(rows(&run(&connect, ["ls", "locks"]).await.ok()).len(), 20);
        client.close().await;
    }

    async fn a_followed_table_prints_only_what_changes(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        client.create("/limit", "7", CreateMode::Persistent).await.unwrap();
        client.create("/other", "7", CreateMode::Persistent).await.unwrap();
        let mut watch = Running::start(&connect, ["ls", "--watch"]);
        for start in ["PATH ", "/limit ", "/other "] {
            let line = watch.line().await;
            assert!(line.starts_with(start), "{line}");
        }
        client.set("/limit", "8", None).await.unwrap();
        let line = watch.line().await;
        assert!(line.starts_with("/limit  counter  ") && line.contains('8'), "{line}");
        client.delete("/limit", None).await.unwrap();
        assert_eq!(watch.line().await, "/limit  deleted");
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        client.close().await;
    }

    async fn lists_are_filtered_and_sorted(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let nightly = builder(&connect).label("nightly").connect().await.unwrap();
        let late = builder(&connect).label("late").connect().await.unwrap();
        let _first = Mutex::new(&nightly, "/z").unwrap().acquire().await.unwrap();
        // The servers' clock has milliseconds.
        let first = server_time(&late).await.unwrap();
        while server_time(&late).await.unwrap() <= first {}
        Queue::<u32>::new(&late, "/q").unwrap().put(&7).await.unwrap();
        let _second = Mutex::new(&late, "/a").unwrap().acquire().await.unwrap();
        for (options, expected) in [
            (&["--kind", "mutex"][..], &["/a", "/z"][..]),
            (&["--kind", "mutex", "--kind", "queue"], &["/a", "/q", "/z"]),
            (&["--owner", "nightly"], &["/z"]),
            (&["--sort", "age", "--kind", "mutex"], &["/z", "/a"]),
            (&["--sort", "owner", "--kind", "mutex"], &["/a", "/z"]),
            (&["--older-than", "1h"], &[]),
            (&["--kind", "election"], &[]),
        ] {
            let reports = run(&connect, [&["ls", "-o", "json"], options].concat()).await.ok().json();
            let paths: Vec<_> = reports.iter().map(|report| report["path"].as_str().unwrap()).collect();
            assert_eq!(paths, expected, "{options:?}");
        }
        nightly.close().await;
        late.close().await;
    }

    async fn a_followed_wide_table_has_all_columns_and_ages_select_only_once(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let mutex = Mutex::new(&client, REPORT).unwrap();
        mutex.acquire().await.unwrap().release().await.unwrap();
        let mut watch = Running::start(&connect, ["ls", "--watch", "-o", "wide"]);
        assert!(watch.line().await.starts_with("PATH"));
        let _guard = mutex.acquire().await.unwrap();
        let mut line = String::new();
        while !line.contains("held") {
            line = watch.line().await;
        }
        assert_eq!(line.split("  ").filter(|cell| !cell.is_empty()).count(), 6, "{line}");
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        let refused = run(&connect, ["ls", "--watch", "--older-than", "5m"]).await;
        assert!(refused.code == 2 && refused.stderr.contains("--older-than"), "{refused:?}");
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

    async fn a_followed_list_reports_new_and_deleted_recipes(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        client.create("/limit", "7", CreateMode::Persistent).await.unwrap();
        let mut watch = Running::start(&connect, ["ls", "--watch", "-o", "json"]);
        let first: Value = serde_json::from_str(&watch.line().await).unwrap();
        assert_eq!(first["path"], "/limit", "{first}");
        let _guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        let mut path = String::new();
        while path != REPORT {
            let report: Value = serde_json::from_str(&watch.line().await).unwrap();
            report["path"].as_str().unwrap().clone_into(&mut path);
        }
        client.delete("/limit", None).await.unwrap();
        let mut line = String::new();
        while line != r#"{"path":"/limit","deleted":true}"# {
            line = watch.line().await;
            assert!(!line.contains("\"config\""), "an unchanged recipe must not be printed again: {line}");
        }
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        client.close().await;
    }

    async fn a_holder_can_be_asked_to_release(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        let revoked = &run(&connect, ["revoke", REPORT, "-o", "json"]).await.ok().json()[0];
        assert_eq!((&revoked["path"], &revoked["asked"]), (&REPORT.into(), &true.into()), "{revoked}");
        timeout(PATIENCE, guard.revoked()).await.expect("the guard must be asked to leave");
        guard.release().await.unwrap();
        let without_holder = run(&connect, ["revoke", REPORT]).await;
        assert_eq!((without_holder.code, without_holder.stderr.contains("has no holder")), (1, true), "{without_holder:?}");
        client.create("/plain", "x", CreateMode::Persistent).await.unwrap();
        assert_eq!(run(&connect, ["revoke", "/plain"]).await.code, 1);
        client.close().await;
    }

    async fn a_holder_is_deleted_only_after_a_yes_and_learns_of_it(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        let unconfirmed = run(&connect, ["break", REPORT]).await;
        assert_eq!(unconfirmed.code, 2, "{unconfirmed:?}");
        let session = format!("session {:#x}", client.session_id().unwrap());
        assert!(unconfirmed.stderr.contains(&session) && unconfirmed.stderr.contains("holds, owner "), "{unconfirmed:?}");
        assert!(guard.is_held());
        let broken = &run(&connect, ["break", REPORT, "--yes", "-o", "json"]).await.ok().json()[0];
        assert_eq!(broken["deleted"], true, "{broken}");
        timeout(PATIENCE, guard.lost()).await.expect("the guard must be lost");
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
        let client = builder(&connect).connect().await.unwrap();
        for item in client.children("/q/items").await.unwrap().names {
            let proofs = client.children(&format!("/q/items/{item}")).await.unwrap().names;
            assert!(proofs.is_empty(), "{proofs:?}");
        }
        client.close().await;
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
        assert_eq!(several.code, 2, "there are several holders: {several:?}");
        let report = &run(&connect, ["inspect", "/limits/export", "-o", "json"]).await.ok().json()[0];
        let name = report["permits"][0]["name"].as_str().unwrap();
        run(&connect, ["break", "/limits/export", name, "--yes"]).await.ok();
        let lost = async { tokio::select! { _ = one.lost() => (), _ = two.lost() => () } };
        timeout(PATIENCE, lost).await.expect("one of the guards must be lost");
        assert_eq!(run(&connect, ["break", "/limits/export", name, "--yes"]).await.code, 1);
        client.close().await;
    }

    async fn waiters_for_a_permit_do_not_count_as_holders(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let semaphore = Semaphore::new(&client, "/limits/export", 2).unwrap();
        let _permits = (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
        let waiting = [tokio::spawn(semaphore.acquire()), tokio::spawn(semaphore.acquire())];
        // One of the waiters has the turn, and its ticket for a permit.
        let tickets = async || {
            let count = async |path| client.children(path).await.map_or(0, |it| it.names.len());
            (count("/limits/export/leases").await, count("/limits/export/locks").await)
        };
        docent_testkit::eventually(PATIENCE, tickets, |count| *count == (3, 2)).await.unwrap();
        let table = run(&connect, ["inspect", "/limits/export"]).await.ok().stdout;
        let count = |state: &str| table.lines().filter(|line| line.starts_with(state)).count();
        assert_eq!((count("holds"), count("waits")), (2, 2), "{table}");
        let list = run(&connect, ["ls", "/limits"]).await.ok();
        assert!(list.stdout.contains("2 of 2 permits out, 2 waiting"), "{list:?}");
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        client.close().await;
    }

    async fn the_age_of_a_holder_counts_from_its_node_and_never_decreases(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let node = format!("{REPORT}/_c_274ea99d-ba87-4def-bd24-7d1929098c6d-lock-0000000000");
        client.create(&node, "web-1 (pid 12)", CreateMode::Ephemeral).await.unwrap();
        // Time must pass for there to be an age.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        // A holder records with its first heartbeat that it holds.
        client.set(&node, "web-1 (pid 12)", None).await.unwrap();

        let table = run(&connect, ["inspect", REPORT]).await.ok().stdout;
        let row: Vec<_> = table.lines().last().unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
        assert!(row[3].trim().ends_with('s') && !row[3].trim().ends_with("ms"), "{table}");
        assert!(table.contains("known to hold for "), "{table}");
        let list = run(&connect, ["ls", "locks"]).await.ok();
        assert!(list.stdout.contains("present for ") && !list.stdout.contains("ms,"), "{list:?}");
        let unconfirmed = run(&connect, ["break", REPORT]).await;
        assert!(unconfirmed.stderr.contains("present for ") && !unconfirmed.stderr.contains("present for 0ms"), "{unconfirmed:?}");
        assert!(!unconfirmed.stderr.contains("at least"), "ages must be measured by the servers' clock: {unconfirmed:?}");

        let table = run(&connect, ["inspect", "--read-only", REPORT]).await.ok().stdout;
        assert!(table.contains("at least 1s"), "{table}");
        let list = run(&connect, ["ls", "--read-only", "locks"]).await.ok();
        assert!(list.stdout.contains("present for at least 1s"), "{list:?}");
        client.close().await;
    }

    async fn a_free_lock_is_reported_as_free(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        Mutex::new(&client, "/released").unwrap().acquire().await.unwrap().release().await.unwrap();
        client.create(REPORT, "", CreateMode::Persistent).await.unwrap();
        for path in [REPORT, "/released", "/never/held"] {
            for verb in [&["break", path, "--yes"][..], &["revoke", path]] {
                let ended = run(&connect, verb).await;
                assert_eq!(ended.code, 1, "{ended:?}");
                assert!(ended.stderr.contains(&format!("{path} is free, ")), "{ended:?}");
                assert!(ended.stderr.contains("nothing was done"), "{ended:?}");
            }
        }
        assert!(client.exists(REPORT).await.unwrap().is_some());
        client.close().await;
    }

    async fn a_revoked_holder_is_described_before_and_after_its_data_is_overwritten(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).label("nightly").connect().await.unwrap();
        let _guard = Mutex::new(&client, REPORT).unwrap().acquire().await.unwrap();
        let session = format!("session {:#x}", client.session_id().unwrap());
        let revoked = run(&connect, ["revoke", REPORT]).await.ok();
        assert!(revoked.stderr.contains("nightly") && revoked.stderr.contains(&session), "{revoked:?}");
        assert!(revoked.stderr.contains("present for "), "{revoked:?}");

        let table = run(&connect, ["inspect", REPORT]).await.ok().stdout;
        assert!(table.contains("asked to leave (its identity was overwritten)"), "{table}");
        assert!(table.contains(&session) && table.contains("by docent or curator"), "{table}");
        let list = run(&connect, ["ls", "locks"]).await.ok();
        assert!(list.stdout.contains(&format!("held by {session}")), "{list:?}");
        let unconfirmed = run(&connect, ["break", REPORT]).await;
        assert!(unconfirmed.stderr.contains(&format!("owner {session}")), "{unconfirmed:?}");
        let busy = run(&connect, ["lock", "--nonblock", REPORT, "--", "true"]).await;
        assert!(busy.code == 75 && busy.stderr.contains(&format!("held by {session}")), "{busy:?}");
        client.close().await;
    }

    async fn unknown_values_are_not_printed_as_blanks_or_as_1970(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = builder(&connect).connect().await.unwrap();
        let node = "/h/lock/_c_274ea99d-ba87-4def-bd24-7d1929098c6d-latch-0000000000";
        client.create(node, "host-7", CreateMode::Ephemeral).await.unwrap();
        let list = run(&connect, ["ls", "--nodes", "2", "/h"]).await;
        assert_eq!((list.code, list.stdout.contains("unknown owner")), (74, false), "{list:?}");
        // The servers' root node has no time.
        let root = run(&server.address().to_string(), ["inspect", "/"]).await.ok();
        assert!(!root.stdout.contains("1970"), "{root:?}");
        client.close().await;
    }

    async fn an_unreadable_path_is_a_separate_failure(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let owner = builder(&connect).auth_digest("owner", "secret").allow_plaintext_auth();
        let owner = owner.acl([Acl::creator_all()]).connect().await.unwrap();
        owner.create("/private", "", CreateMode::Persistent).await.unwrap();
        for arguments in [
            &["inspect", "/private"][..],
            &["inspect", "--watch", "/private"],
            &["ls", "/private"],
            &["break", "/private", "--yes"],
            &["revoke", "/private"],
            &["elect", "--listen", "/private"],
        ] {
            let refused = run(&connect, arguments).await;
            assert_eq!((refused.code, refused.stdout.as_str()), (77, ""), "{arguments:?}: {refused:?}");
            assert!(refused.stderr.contains("permission denied"), "{refused:?}");
        }
        // Below the path, a missing permission is only a remark.
        let parent = run(&connect, ["ls", "/"]).await.ok();
        assert!(parent.stderr.contains("permission denied at /private"), "{parent:?}");
        owner.close().await;
    }
}
