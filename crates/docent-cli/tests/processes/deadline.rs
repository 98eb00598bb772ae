//! Commands whose lock is being lost.

use crate::process::{PATIENCE, time_of_death};
use crate::run::{Run, servers, through};
use docent::{Client, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use std::time::Duration;

/// Deletes the node of the holder of `/a`, as an operator does who breaks the lock.
async fn break_lock(client: &Client) {
    let line = Mutex::new(client, "/a").unwrap().participants().await.unwrap();
    client.delete(&format!("/a/{}", line[0].name), None).await.unwrap();
}

both_backends_in_real_time! {
    async fn a_command_without_a_connection_is_killed_before_the_next_holder_starts(backend: Backend) {
        let server = backend.start().await;
        let proxy = server.proxy().await;
        let script = "trap 'echo told' TERM; echo $$; while :; do sleep 0.02; done";
        let words = ["lock", "/a", "--kill-after", "1s", "--", "sh", "-c", script];
        let mut holder = Run::start(&through(&proxy, &server), words);
        let command = holder.number().await;
        let next = Run::start(&servers(&server), ["lock", "/a", "--", "date", "+%s.%N"]);
        let client = Client::connect(servers(&server)).await.unwrap();
        let lock = Mutex::new(&client, "/a").unwrap();
        let line = async || lock.participants().await.unwrap().len();
        eventually(PATIENCE, line, |line| *line == 2).await.unwrap();
        proxy.blackhole();
        let died = time_of_death(command).await;
        let started: f64 = next.end().await.stdout[0].parse().unwrap();
        println!("command dead at {:.3}, next holder at {started:.3}", died);
        assert!(died < started);
        let ended = holder.end().await;
        assert_eq!((ended.code, ended.stdout), (76, vec!["told".to_owned()]), "{}", ended.stderr);
        client.close().await;
    }

    async fn a_command_learns_of_a_broken_lock_by_signal_and_by_descriptor(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        // The shell reads the end of the descriptor first. The signal interrupts it only after that.
        let script = "trap 'echo told; exit 9' TERM; echo ready; cat /dev/fd/$DOCENT_LOST_FD; while :; do sleep 0.02; done";
        // A lease with room for the default of five seconds that a command has to stop.
        let words = ["--session-timeout", "20s", "lock", "/a", "--", "sh", "-c", script];
        let mut holder = Run::start(&servers(&server), words);
        assert_eq!(holder.line().await, "ready");
        break_lock(&client).await;
        let ended = holder.end().await;
        assert_eq!((ended.code, ended.stdout), (76, vec!["told".to_owned()]), "{}", ended.stderr);
        assert!(ended.stderr.contains("another client deleted its node"), "{}", ended.stderr);
        client.close().await;
    }

    async fn a_command_that_does_not_stop_is_killed_with_all_that_it_started(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let script = "trap '' TERM; sleep 1000 & echo $!; wait";
        let words = ["lock", "/a", "--kill-after", "300ms", "--", "sh", "-c", script];
        let mut holder = Run::start(&servers(&server), words);
        let grandchild = holder.number().await;
        break_lock(&client).await;
        assert_eq!(holder.end().await.code, 76);
        crate::process::until_dead(grandchild).await;
        client.close().await;
    }

    async fn the_on_lost_option_decides_whether_a_lost_lock_kills_the_command(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let endless = "trap 'echo told' TERM; echo ready; while :; do sleep 0.02; done";
        let continuing = "trap 'echo told' TERM; echo ready; cat /dev/fd/$DOCENT_LOST_FD; echo on; exit 5";
        for (fate, script, code, expected) in [("kill", endless, 76, &[][..]), ("ignore", continuing, 5, &["on"][..])] {
            let words = ["lock", "/a", "--on-lost", fate, "--", "sh", "-c", script];
            let mut holder = Run::start(&servers(&server), words);
            assert_eq!(holder.line().await, "ready");
            break_lock(&client).await;
            let ended = holder.end().await;
            assert!(ended.code == code && ended.stdout == expected, "{fate}: {ended:?}");
        }
        client.close().await;
    }

    async fn a_lock_that_is_lost_without_a_command_is_a_failure(backend: Backend) {
        let server = backend.start().await;
        let client = Client::connect(servers(&server)).await.unwrap();
        let mut holder = Run::start(&servers(&server), ["lock", "/a"]);
        holder.line().await;
        break_lock(&client).await;
        let ended = holder.end().await;
        assert_eq!(ended.code, 76, "{ended:?}");
        client.close().await;
    }

    async fn a_brief_disconnect_does_not_affect_the_command(backend: Backend) {
        let server = backend.start().await;
        let script = "echo ready; sleep 3; echo done";
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", script]);
        assert_eq!(holder.line().await, "ready");
        server.front().reset().await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        server.front().reset().await;
        let ended = holder.end().await;
        assert_eq!((ended.code, ended.stdout), (0, vec!["done".to_owned()]), "{}", ended.stderr);
    }
}
