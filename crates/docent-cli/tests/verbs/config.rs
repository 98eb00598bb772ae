//! `docent config`.

use crate::docent_command::{Ended, Running, docent, end, run, run_with, servers};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const KEY: &str = "/config/limits";

async fn config(connect: &str, arguments: &[&str]) -> Ended {
    run(connect, ["config"].iter().chain(arguments)).await
}

/// An editor: a script that gets the file as its last argument.
fn editor(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("editor");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

async fn edit(connect: &str, editor: &Path) -> Ended {
    end(docent(connect, ["config", "edit", "--json", KEY]).env("EDITOR", editor).spawn().unwrap()).await
}

both_backends_in_real_time! {
    async fn a_value_is_stored_and_printed_byte_for_byte(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let value = "{\"a\": \"\u{1b}[31m\"}\n\n";
        run_with(&connect, ["config", "set", KEY], value).await.ok();
        assert_eq!(config(&connect, &["get", KEY]).await.ok().stdout, value);
        let shown = &config(&connect, &["get", KEY, "-o", "json"]).await.ok().json()[0];
        assert_eq!((&shown["value"], &shown["version"]), (&value.into(), &0.into()), "{shown}");
    }

    async fn a_signal_interrupts_reading_standard_input(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let set: &[&str] = &["config", "set", KEY];
        // The value is read before servers are contacted.
        let writes = [("127.0.0.1:1", set), (&connect, &["queue", "put", "--whole", KEY])];
        for (connect, arguments) in writes {
            let (run, _stdin) = Running::start_reading(connect, arguments).await;
            let began = Instant::now();
            assert_eq!(run.stop(Signal::TERM).await, 143, "{arguments:?}");
            assert!(began.elapsed() < Duration::from_secs(5), "{arguments:?}");
        }
    }

    async fn a_missing_value_is_a_failure(backend: Backend) {
        let server = backend.start().await;
        let ended = config(&servers(&server), &["get", KEY]).await;
        assert_eq!((ended.code, &*ended.stderr), (1, "docent: nothing is published at /config/limits\n"));
    }

    async fn a_value_is_set_only_if_its_version_is_unchanged(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        config(&connect, &["set", KEY, "1", "--if-absent"]).await.ok();
        assert_eq!(config(&connect, &["set", KEY, "2", "--if-absent"]).await.code, 73);
        config(&connect, &["set", KEY, "2", "--if-version", "0"]).await.ok();
        let late = config(&connect, &["set", KEY, "3", "--if-version", "0"]).await;
        assert_eq!(late.code, 73);
        assert!(late.stderr.contains("has version 1, not 0"), "{late:?}");
        assert_eq!(config(&connect, &["get", KEY]).await.stdout, "2");
    }

    async fn invalid_json_is_rejected_if_json_is_required(backend: Backend) {
        let server = backend.start().await;
        let ended = config(&servers(&server), &["set", KEY, "{oops", "--json"]).await;
        assert_eq!(ended.code, 65, "{ended:?}");
    }

    async fn an_object_becomes_variables_that_a_shell_can_take(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        config(&connect, &["set", KEY, r#"{"host": "it's $HOME", "pool": {"size": 4}}"#]).await.ok();
        let lines = config(&connect, &["get", KEY, "--env", "--env-any"]).await.ok().stdout;
        assert_eq!(lines, "HOST='it'\\''s $HOME'\nPOOL_SIZE='4'\n");
        let script = format!("{lines}printf '%s %s' \"$HOST\" \"$POOL_SIZE\"");
        let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(shell.stdout).unwrap(), "it's $HOME 4");
        config(&connect, &["set", KEY, "7"]).await.ok();
        assert_eq!(config(&connect, &["get", KEY, "--env", "--env-any"]).await.code, 65);
    }

    async fn data_cannot_set_variables_that_affect_execution(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let value = r#"{"path": "/tmp", "ld": {"preload": "x"}, "docent_version": 77, "uid": 0, "ps4": "$(id)", "n": 1}"#;
        config(&connect, &["set", KEY, value]).await.ok();
        let got = config(&connect, &["get", KEY, "--env", "--env-any"]).await.ok();
        assert_eq!(got.stdout, "N='1'\n");
        assert!(["PATH", "LD_PRELOAD", "DOCENT_VERSION", "UID", "PS4"].iter().all(|name| got.stderr.contains(name)), "{got:?}");
        let hook = "echo \"$DOCENT_VERSION $N ${LD_PRELOAD-unset}\"";
        let mut watch = Running::start(&connect, ["config", "watch", "--env", "--env-any", KEY, "--", "sh", "-c", hook]);
        assert_eq!(watch.line().await, "0 1 unset");
        assert_eq!(watch.stop(Signal::TERM).await, 143);
        config(&connect, &["set", KEY, r#"{"a": "x\nB=2"}"#]).await.ok();
        let got = config(&connect, &["get", KEY, "--env", "--env-any"]).await;
        assert_eq!((got.code, &*got.stdout, got.stderr.contains("value of A")), (65, "", true), "{got:?}");
    }

    async fn a_prefix_bounds_the_variables_that_data_sets(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        config(&connect, &["set", KEY, r#"{"app": {"n": 1, "home": "/"}, "n": 2}"#]).await.ok();
        let got = config(&connect, &["get", KEY, "--env", "--env-prefix", "APP_"]).await.ok();
        assert_eq!((&*got.stdout, &*got.stderr), ("APP_HOME='/'\nAPP_N='1'\n", ""));
        let get = async |arguments: &[&str]| {
            let mut command = docent(&connect, ["config", "get", KEY, "--env"].iter().chain(arguments));
            end(command.env("APP_N", "mine").spawn().unwrap()).await.ok()
        };
        let got = get(&["--env-any"]).await;
        assert_eq!(got.stdout, "APP_HOME='/'\nN='2'\n", "a variable that is already set stays");
        assert!(got.stderr.contains("APP_N is in the environment already"), "{got:?}");
        assert_eq!(get(&["--env-prefix", "APP_"]).await.stdout, "APP_HOME='/'\nAPP_N='1'\n");
        assert_eq!(config(&connect, &["get", KEY, "--env", "--env-prefix", "app"]).await.code, 2);
        for (arguments, missing) in [(&["--env"][..], "--env-prefix"), (&["--env-any"], "--env")] {
            let refused = config(&connect, &[&["get", KEY], arguments].concat()).await;
            assert!(refused.code == 2 && refused.stderr.contains(missing), "{refused:?}");
        }
        let both = ["get", KEY, "--env", "--env-any", "--env-prefix", "APP_"];
        assert_eq!(config(&connect, &both).await.code, 2);
    }

    async fn a_deletion_is_printed_and_runs_no_command(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let client = docent::Client::connect(&connect).await.unwrap();
        config(&connect, &["set", KEY, "1"]).await.ok();
        let mut json = Running::start(&connect, ["config", "watch", KEY, "-o", "json"]);
        let mut hook = Running::start(&connect, ["config", "watch", KEY, "--", "sh", "-c", "cat; echo ."]);
        json.line().await;
        assert_eq!(hook.line().await, "1.");
        client.delete(KEY, None).await.unwrap();
        assert_eq!(json.line().await, format!("{{\"path\":\"{KEY}\",\"deleted\":true}}"));
        config(&connect, &["set", KEY, "2"]).await.ok();
        assert!(json.line().await.contains("\"value\":\"2\""));
        assert_eq!(hook.line().await, "2.");
        assert_eq!((json.stop(Signal::TERM).await, hook.stop(Signal::TERM).await), (143, 143));
        client.close().await;
    }

    async fn a_hook_that_cannot_be_run_ends_the_watch(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        config(&connect, &["set", KEY, "1"]).await.ok();
        assert_eq!(config(&connect, &["watch", KEY, "--", "no-such-program"]).await.code, 127);
        assert_eq!(config(&connect, &["watch", KEY, "--", "/"]).await.code, 126);
    }

    async fn the_root_is_no_key(backend: Backend) {
        let server = backend.start().await;
        for verb in [&["get", "/"][..], &["set", "/", "1"], &["history", "/"]] {
            let ended = config(&servers(&server), verb).await;
            assert_eq!((ended.code, ended.stderr.contains("must be below the root")), (2, true), "{ended:?}");
        }
    }

    async fn an_editor_changes_the_value_unless_another_client_did(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        config(&connect, &["set", KEY, "{\"n\": 1}"]).await.ok();
        let path = editor(folder.path(), "sed -i 's/1/2/' \"$1\"");
        edit(&connect, &path).await.ok();
        assert_eq!(config(&connect, &["get", KEY]).await.stdout, "{\"n\": 2}");

        let docent = env!("CARGO_BIN_EXE_docent");
        let path = editor(folder.path(), &format!("{docent} config set {KEY} 9 && echo 3 > \"$1\""));
        let ended = edit(&connect, &path).await;
        assert_eq!(ended.code, 73, "{ended:?}");
        let kept = ended.stderr.trim().rsplit(' ').next().unwrap();
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "3\n", "the work must not be lost");
        std::fs::remove_file(kept).unwrap();
        assert_eq!(config(&connect, &["get", KEY]).await.stdout, "9");

        let path = editor(folder.path(), "exit 1");
        assert_eq!(edit(&connect, &path).await.code, 1);
        let path = editor(folder.path(), "exit 0");
        assert!(edit(&connect, &path).await.ok().stderr.contains("nothing was changed"));
    }

    async fn an_editor_does_not_need_the_folder_of_temporary_files(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        config(&connect, &["set", KEY, "1"]).await.ok();
        let editor = editor(folder.path(), "echo \"$1\"; echo 2 > \"$1\"; exit 3");
        let edit = async |runtime: Option<&Path>| {
            let mut edit = docent(&connect, ["config", "edit", KEY]);
            edit.env("EDITOR", &editor).env("TMPDIR", folder.path().join("missing"));
            edit.envs(runtime.map(|folder| ("XDG_RUNTIME_DIR", folder)));
            let ended = end(edit.spawn().unwrap()).await;
            let kept = PathBuf::from(ended.stdout.trim_end());
            assert!(ended.code == 1 && ended.stderr.contains(kept.to_str().unwrap()), "{ended:?}");
            assert_eq!(std::fs::read_to_string(&kept).unwrap(), "2\n");
            std::fs::remove_file(&kept).unwrap();
            kept
        };
        assert_eq!(edit(Some(folder.path())).await.parent(), Some(folder.path()));
        assert_eq!(edit(None).await.parent(), Some(Path::new("/dev/shm")));
    }

    async fn a_signal_reaches_an_editor(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let path = editor(folder.path(), "trap 'exit 3' TERM; echo ready; while :; do sleep 0.02; done");
        let mut run = Running::spawn(docent(&servers(&server), ["config", "edit", KEY]).env("EDITOR", path));
        assert_eq!(run.line().await, "ready");
        assert_eq!(run.stop(Signal::TERM).await, 1);
    }

    async fn work_in_an_editor_is_kept_when_it_cannot_be_published(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        config(&connect, &["set", KEY, "1"]).await.ok();
        let long = "{ printf '\"'; head -c 3000000 /dev/zero | tr '\\0' x; printf '\"'; } > \"$1\"";
        for (script, code, length) in [(long, 65, 3_000_002), ("echo '{oops' > \"$1\"", 65, 6), ("echo 2 > \"$1\"; exit 1", 1, 2)] {
            let ended = edit(&connect, &editor(folder.path(), script)).await;
            assert_eq!(ended.code, code, "{ended:?}");
            let kept = ended.stderr.trim().rsplit(' ').next().unwrap();
            assert_eq!(std::fs::read(kept).unwrap().len(), length, "{ended:?}");
            std::fs::remove_file(kept).unwrap();
        }
        let none = edit(&connect, &editor(folder.path(), "rm \"$1\"")).await;
        assert_eq!((none.code, none.stderr.contains("is in")), (1, false), "{none:?}");
        assert!(none.stderr.contains("left no file"), "{none:?}");
        assert_eq!(config(&connect, &["get", KEY]).await.stdout, "1");
    }

    async fn earlier_values_are_listed_and_can_be_restored(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        for value in ["one", "two", "three\u{1b}[2J"] {
            config(&connect, &["set", KEY, value]).await.ok();
        }
        let table = config(&connect, &["history", KEY]).await.ok().stdout;
        assert!(table.contains("three\\u{1b}[2J") && !table.contains('\u{1b}'), "{table}");
        let values = |ended: &Ended| ended.json().iter().map(|entry| entry["value"].clone()).collect::<Vec<_>>();
        let history = config(&connect, &["history", KEY, "-o", "json"]).await.ok();
        assert_eq!(values(&history), ["three\u{1b}[2J", "two", "one"]);
        config(&connect, &["rollback", KEY]).await.ok();
        assert_eq!(config(&connect, &["get", KEY]).await.stdout, "two");
        config(&connect, &["rollback", KEY, "0"]).await.ok();
        assert_eq!(config(&connect, &["get", KEY]).await.stdout, "one");
        assert_eq!(config(&connect, &["rollback", KEY, "77"]).await.code, 1);
    }

    async fn a_watch_prints_each_value_until_a_signal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut watch = Running::start(&connect, ["config", "watch", KEY, "-o", "json"]);
        config(&connect, &["set", KEY, "1"]).await.ok();
        let version = |line: String| serde_json::from_str::<serde_json::Value>(&line).unwrap()["version"].clone();
        assert_eq!(version(watch.line().await), 0);
        config(&connect, &["set", KEY, "2"]).await.ok();
        assert_eq!(version(watch.line().await), 1);
        assert_eq!(watch.stop(Signal::TERM).await, 143);
    }

    async fn a_reload_hook_runs_for_each_value_and_survives_its_own_failure(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        config(&connect, &["set", KEY, r#"{"n": 1}"#]).await.ok();
        let hook = "cat; echo \" $DOCENT_PATH $DOCENT_VERSION $N\"; exit 126";
        let mut watch = Running::start(&connect, ["config", "watch", "--env", "--env-any", KEY, "--", "sh", "-c", hook]);
        assert_eq!(watch.line().await, r#"{"n": 1} /config/limits 0 1"#);
        config(&connect, &["set", KEY, "not an object"]).await.ok();
        config(&connect, &["set", KEY, r#"{"n": 2}"#]).await.ok();
        assert_eq!(watch.line().await, r#"{"n": 2} /config/limits 2 2"#);
        assert_eq!(watch.stop(Signal::INT).await, 130);
    }

    async fn a_value_without_valid_variables_does_not_end_the_watch(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        config(&connect, &["set", KEY, "no object"]).await.ok();
        let mut watch = Running::start(&connect, ["config", "watch", "--env", "--env-any", KEY]);
        config(&connect, &["set", KEY, r#"{"n": 2}"#]).await.ok();
        assert_eq!(watch.line().await, "N='2'");
        assert_eq!(watch.stop(Signal::TERM).await, 143);
    }

    async fn an_endless_input_is_rejected(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let from_file = config(&connect, &["set", KEY, "--file", "/dev/zero"]).await;
        assert_eq!(from_file.code, 65, "{from_file:?}");
        for arguments in [["config", "set", KEY].as_slice(), &["queue", "put", "/q", "--whole"], &["queue", "put", "/q"]] {
            let zero = std::fs::File::open("/dev/zero").unwrap();
            let ended = end(docent(&connect, arguments).stdin(zero).spawn().unwrap()).await;
            assert_eq!(ended.code, 65, "{ended:?}");
        }
    }
}
