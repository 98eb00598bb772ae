//! `docent config ls`, `delete`, `export`, `import`, and the rows of `watch`.

use crate::docent_command::{Ended, PATIENCE, Running, run, run_with, servers};
use docent::node::CreateMode;
use docent::{Client, Config, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::Signal;
use serde_json::{Value, json};

async fn config(connect: &str, arguments: &[&str]) -> Ended {
    run(connect, ["config"].iter().chain(arguments)).await
}

/// Publishes values.
async fn publish(connect: &str, values: &[(&str, &str)]) {
    for (path, value) in values {
        config(connect, &["set", path, value]).await.ok();
    }
}

both_backends_in_real_time! {
    async fn values_are_listed_without_nodes_of_other_recipes(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        publish(&connect, &[("/config/mail", "on"), ("/config/mail/port", "25"), ("/config/empty", "")]).await;
        publish(&connect, &[("/config/mail", "off")]).await;
        let _guard = Mutex::new(&client, "/config/lock").unwrap().acquire().await.unwrap();
        client.create("/config/alive", "x", CreateMode::Ephemeral).await.unwrap();
        client.create("/other", "x", CreateMode::Persistent).await.unwrap();
        let paths = |ended: &Ended| ended.json().iter().map(|one| one["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        let below = config(&connect, &["ls", "/config", "-o", "json"]).await.ok();
        assert_eq!(paths(&below), ["/config/empty", "/config/mail", "/config/mail/port"]);
        assert_eq!((&below.json()[1]["value"], &below.json()[1]["version"]), (&"off".into(), &1.into()));
        assert_eq!(paths(&config(&connect, &["ls", "-o", "json"]).await.ok()).last().unwrap(), "/other");
        assert_eq!(paths(&config(&connect, &["ls", "/config/mail/port", "-o", "json"]).await.ok()), ["/config/mail/port"]);
        let table = config(&connect, &["ls", "/config"]).await.ok().stdout;
        assert!(table.starts_with("PATH") && table.contains("/config/mail/port  0 "), "{table}");
        let wide = config(&connect, &["ls", "/config", "-o", "wide"]).await.ok().stdout;
        assert!(wide.contains("MZXID") && wide.contains("0x"), "{wide}");
        assert_eq!(config(&connect, &["ls", "/none", "-o", "json"]).await.ok().stdout, "");
        client.close().await;
    }

    async fn a_value_is_deleted_with_its_history_after_a_yes_and_only_in_the_wanted_version(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        publish(&connect, &[("/config/a", "1"), ("/config/a", "2"), ("/config/b/c", "3"), ("/config/b", "4")]).await;
        let reader = Config::<u32>::new(&client, "/config/a").unwrap();
        let running = reader.report_as("web-1").unwrap();
        running.set(&reader.get().await.unwrap().unwrap()).unwrap();
        let inspect = async || run(&connect, ["inspect", "/config/a", "-o", "json"]).await.ok().json().remove(0);
        let report = eventually(PATIENCE, inspect, |report: &Value| !report["readers"][0].is_null()).await.unwrap();
        assert_eq!((&report["readers"][0]["id"], &report["readers"][0]["is_current"]), (&"web-1".into(), &true.into()));
        let text = run(&connect, ["inspect", "/config/a"]).await.ok().stdout;
        assert!(text.contains("1 of 1 run this version") && text.contains("web-1"), "{text}");
        let listed = config(&connect, &["ls", "/config/a", "-o", "json"]).await.ok().json();
        assert_eq!(listed.len(), 1, "{listed:?}");
        let unconfirmed = config(&connect, &["delete", "/config/a"]).await;
        assert!(unconfirmed.code == 2 && unconfirmed.stderr.contains("version 1 of"), "{unconfirmed:?}");
        let late = config(&connect, &["delete", "/config/a", "--if-version", "0", "--yes"]).await;
        assert!(late.code == 73 && late.stderr.contains("has version 1, not 0"), "{late:?}");
        assert_eq!(config(&connect, &["get", "/config/a"]).await.ok().stdout, "2");
        let deleted = config(&connect, &["delete", "/config/a", "--if-version", "1", "--yes", "-o", "json"]).await.ok();
        assert_eq!(deleted.stdout, "{\"path\":\"/config/a\",\"deleted\":true}\n");
        client.sync("/config/a").await.unwrap();
        assert!(client.exists("/config/a").await.unwrap().is_none());
        let parent = config(&connect, &["delete", "/config/b", "--yes"]).await;
        assert!(parent.code == 1 && parent.stderr.contains("other nodes below /config/b"), "{parent:?}");
        assert_eq!(config(&connect, &["get", "/config/b"]).await.ok().stdout, "4");
        let missing = config(&connect, &["delete", "/config/a", "--yes"]).await;
        assert!(missing.code == 1 && missing.stderr.contains("nothing is published"), "{missing:?}");
        client.close().await;
    }

    async fn an_export_restores_the_same_values(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        publish(&connect, &[("/config/a", "{\"n\": 1}\n"), ("/config/b", "\u{1b}[2J"), ("/config/b/c/d", "deep")]).await;
        client.create("/config/bytes", &b"\xff\0"[..], CreateMode::Persistent).await.unwrap();
        let file = config(&connect, &["export", "/config", "-o", "yaml"]).await.ok().stdout;
        assert!(!file.contains('\u{1b}') && file.contains(r#"{"path":"/config/bytes","value":{"hex":"ff00"}}"#), "{file}");
        let nothing = config(&connect, &["export", "/confg"]).await;
        assert!(nothing.code == 1 && nothing.stderr.contains("nothing is published at /confg"), "{nothing:?}");

        let same = run_with(&connect, ["config", "import", "-", "-o", "json"], &file).await.ok().json();
        assert!(same.len() == 4 && same.iter().all(|one| one["action"] == "unchanged"), "{same:?}");
        for path in ["/config/b/c/d", "/config/b/c", "/config/bytes"] {
            client.delete(path, None).await.unwrap();
        }
        let restored = run_with(&connect, ["config", "import", "-", "-o", "json"], &file).await.ok().json();
        let created: Vec<_> = restored.iter().filter(|one| one["action"] == "create").map(|one| one["path"].clone()).collect();
        assert_eq!(created, ["/config/b/c/d", "/config/bytes"]);
        assert_eq!(client.get("/config/bytes").await.unwrap().data, &b"\xff\0"[..]);
        assert_eq!(config(&connect, &["export", "/config"]).await.ok().stdout, file);
        client.close().await;
    }

    async fn an_import_with_a_conflict_changes_nothing_unless_it_may_overwrite(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        publish(&connect, &[("/config/a", "old")]).await;
        let line = |path: &str, value: &str| json!({"path": path, "value": value}).to_string() + "\n";
        let file = line("/config/new/one", "1") + &line("/config/a", "new");
        let import = async |arguments: &[&str]| {
            run_with(&connect, ["config", "import", "-", "-o", "json"].iter().chain(arguments), &file).await
        };
        let actions = |ended: &Ended| ended.json().iter().map(|one| one["action"].clone()).collect::<Vec<_>>();
        let refused = import(&[]).await;
        assert_eq!((refused.code, actions(&refused)), (73, vec![json!("create"), json!("conflict")]));
        assert!(refused.stderr.contains("1 of 2 values differ") && refused.stderr.contains("--overwrite"), "{refused:?}");
        let plan = import(&["--overwrite", "--dry-run"]).await.ok();
        assert_eq!(actions(&plan), ["create", "replace"]);
        assert_eq!(config(&connect, &["ls", "-o", "json"]).await.ok().json().len(), 1, "nothing was imported");
        import(&["--overwrite"]).await.ok();
        let history = config(&connect, &["history", "/config/a", "-o", "json"]).await.ok().json();
        assert_eq!(history.iter().map(|one| &one["value"]).collect::<Vec<_>>(), ["new", "old"]);
        config(&connect, &["rollback", "/config/a"]).await.ok();
        assert_eq!(config(&connect, &["get", "/config/a"]).await.ok().stdout, "old");
        assert_eq!(config(&connect, &["get", "/config/new/one"]).await.ok().stdout, "1");
    }

    async fn an_import_refuses_bad_files_and_other_recipes(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = Client::connect(&connect).await.unwrap();
        let _guard = Mutex::new(&client, "/lock").unwrap().acquire().await.unwrap();
        let good = "{\"path\":\"/good\",\"value\":\"1\"}\n";
        for (rest, code, named) in [
            ("{oops", 65, "line 2"),
            ("{\"path\":\"/lock\",\"value\":\"1\"}", 1, "/lock is of kind mutex"),
            ("{\"path\":\"/a//b\",\"value\":\"1\"}", 2, "/a//b"),
        ] {
            let ended = run_with(&connect, ["config", "import", "-"], &format!("{good}{rest}")).await;
            assert!(ended.code != 0 && ended.stderr.contains(named), "{rest}: {ended:?}");
            assert!(code == 2 || ended.code == code, "{rest}: {ended:?}");
        }
        assert!(client.exists("/good").await.unwrap().is_none());
        for (value, code) in [("x", 0), ("y", 65)] {
            let line = |path: &str| json!({"path": path, "value": value.repeat(300_000)}).to_string() + "\n";
            // With the old values, which are added to the histories, the second transaction is too large.
            let file = line("/large/a") + &line("/large/b");
            let ended = run_with(&connect, ["config", "import", "-", "--overwrite"], &file).await;
            assert!(ended.code == code && (code == 0 || ended.stderr.contains("split the file")), "{ended:?}");
            let data = client.get("/large/b").await.unwrap().data;
            assert!(data.starts_with(b"x"), "nothing was imported");
        }
        let empty = run_with(&connect, ["config", "import", "-"], "\n").await;
        assert!(empty.code == 65 && empty.stderr.contains("has no values"), "{empty:?}");
        client.close().await;
    }

    async fn changes_below_a_path_are_rows_with_the_old_and_the_new_value(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        publish(&connect, &[("/config/a", "1"), ("/config/b/c", "x")]).await;
        let mut rows = Running::start(&connect, ["config", "watch", "--below", "/config"]);
        let mut json = Running::start(&connect, ["config", "watch", "--below", "/config", "-o", "json"]);
        for watch in [&mut rows, &mut json] {
            watch.remarks().until("following 2 values below /config").await;
        }
        publish(&connect, &[("/config/b/c", "\u{1b}y")]).await;
        assert_eq!(rows.line().await, "/config/b/c  0 -> 1  \"x\" -> \"\\u{1b}y\"");
        let row: Value = serde_json::from_str(&json.line().await).unwrap();
        assert_eq!((&row["old_value"], &row["value"]), (&"x".into(), &"\u{1b}y".into()), "{row}");
        publish(&connect, &[("/config/new", "2")]).await;
        assert_eq!(rows.line().await, "/config/new  - -> 0  - -> \"2\"");
        let row: Value = serde_json::from_str(&json.line().await).unwrap();
        assert_eq!((&row["old_value"], &row["old_version"], &row["version"]), (&Value::Null, &Value::Null, &0.into()));
        config(&connect, &["delete", "/config/a", "--yes"]).await.ok();
        assert_eq!(rows.line().await, "/config/a  0 -> -  \"1\" -> -");
        let row: Value = serde_json::from_str(&json.line().await).unwrap();
        let expected = json!({"path": "/config/a", "deleted": true, "old_version": 0, "old_value": "1"});
        assert_eq!(row, expected);
        assert_eq!((rows.stop(Signal::TERM).await, json.stop(Signal::TERM).await), (143, 143));
    }

    async fn changes_of_one_value_are_rows_as_well(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        publish(&connect, &[("/config/a", "1")]).await;
        let mut rows = Running::start(&connect, ["config", "watch", "--diff", "/config/a"]);
        rows.remarks().until("following /config/a").await;
        publish(&connect, &[("/config/a", "2")]).await;
        assert_eq!(rows.line().await, "/config/a  0 -> 1  \"1\" -> \"2\"");
        config(&connect, &["delete", "/config/a", "--yes"]).await.ok();
        assert_eq!(rows.line().await, "/config/a  1 -> -  \"2\" -> -");
        assert_eq!(rows.stop(Signal::TERM).await, 143);
        let both = config(&connect, &["watch", "--diff", "/config/a", "--", "true"]).await;
        assert_eq!(both.code, 2, "{both:?}");
    }
}
