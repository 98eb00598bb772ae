//! Locks held without a command, shared locks and permits.

use crate::process::is_alive;
use crate::run::{Run, run, servers};
use docent_battery::{Backend, both_backends_in_real_time};
use rustix::process::Signal;
use serde_json::Value;

both_backends_in_real_time! {
    async fn without_a_command_the_lock_is_held_until_a_signal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = Run::start(&connect, ["-o", "json", "lock", "/a"]);
        let line: Value = serde_json::from_str(&holder.line().await).unwrap();
        assert!(line["path"] == "/a" && line["fence"].is_u64(), "{line}");
        assert_eq!(run(&connect, ["lock", "-n", "/a", "--", "true"]).await.code, 75);
        holder.signal(Signal::TERM);
        let ended = holder.end().await;
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
        assert_eq!(run(&connect, ["lock", "-n", "/a", "--", "true"]).await.code, 0, "the lock must be free immediately");
    }

    async fn a_holder_that_is_asked_to_release_exits_together_with_its_command(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = Run::start(&connect, ["lock", "/a"]);
        holder.line().await;
        assert_eq!(run(&connect, ["revoke", "/a"]).await.code, 0);
        let ended = holder.end().await;
        assert_eq!(ended.code, 0);
        assert!(ended.stderr.contains("was asked to leave"), "{}", ended.stderr);

        let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
        let mut holder = Run::start(&connect, ["lock", "/a", "--", "sh", "-c", script]);
        assert_eq!(holder.line().await, "ready");
        assert_eq!(run(&connect, ["revoke", "/a"]).await.code, 0);
        let ended = holder.end().await;
        assert_eq!(ended.code, 7);
        assert!(ended.stderr.contains("was asked to leave"), "{}", ended.stderr);
        assert_eq!(run(&connect, ["lock", "-n", "/a", "--", "true"]).await.code, 0, "the lock must be free");
    }

    async fn readers_share_and_keep_a_writer_out(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut reader = Run::start(&connect, ["lock", "--shared", "/a"]);
        assert_eq!(reader.line().await, "/a -");
        assert_eq!(run(&connect, ["lock", "-n", "--shared", "/a", "--", "true"]).await.code, 0);
        assert_eq!(run(&connect, ["lock", "-n", "--exclusive", "/a", "--", "true"]).await.code, 75);
        let mixed = run(&connect, ["lock", "-n", "/a", "--", "true"]).await;
        assert!(mixed.code == 75 || mixed.stderr.contains("another kind"), "{mixed:?}");
    }

    async fn permits_are_counted(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = Run::start(&connect, ["lock", "--permits", "2/3", "/a"]);
        assert_eq!(holder.line().await, "/a -");
        assert_eq!(run(&connect, ["lock", "-n", "--permits", "1/3", "/a", "--", "true"]).await.code, 0);
        assert_eq!(run(&connect, ["lock", "-n", "--permits", "2/3", "/a", "--", "true"]).await.code, 75);
    }

    async fn processes_that_the_command_leaves_are_ended_before_the_lock_is_released(backend: Backend) {
        let server = backend.start().await;
        let script = "(trap '' TERM; while :; do sleep 0.02; done) >/dev/null 2>&1 & echo $!";
        let words = ["lock", "/a", "--kill-after", "500ms", "--", "sh", "-c", script];
        let mut holder = Run::start(&servers(&server), words);
        let remaining = holder.number().await;
        assert_eq!(holder.end().await.code, 0);
        assert!(!is_alive(remaining), "the process must not run without the lock");
    }
}
