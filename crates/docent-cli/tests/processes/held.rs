//! Locks that are held without a command, shared locks and permits.

use crate::run::{Run, run, servers};
use docent_battery::{Backend, both_backends};
use rustix::process::Signal;
use serde_json::Value;

both_backends! {
    async fn without_a_command_it_holds_until_a_signal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = Run::start(&connect, ["-o", "json", "lock", "/a"]);
        let line: Value = serde_json::from_str(&holder.line().await).unwrap();
        assert!(line["path"] == "/a" && line["fence"].is_u64(), "{line}");
        assert_eq!(run(&connect, ["lock", "-n", "/a", "--", "true"]).await.code, 75);
        holder.signal(Signal::TERM);
        let ended = holder.end().await;
        assert_eq!((ended.code, &*ended.stderr), (0, ""), "{ended:?}");
        assert_eq!(run(&connect, ["lock", "-n", "/a", "--", "true"]).await.code, 0, "it is free at once");
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
}
