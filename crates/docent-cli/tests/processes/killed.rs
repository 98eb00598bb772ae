//! Abrupt ends of `docent`, and pauses.

use crate::process::{PATIENCE, is_alive, keeper_of, send, time_of_death, until_dead};
use crate::run::{Run, servers};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

both_backends_in_real_time! {
    async fn a_killed_docent_takes_its_command_along_and_frees_the_lock_in_time(backend: Backend) {
        let server = backend.start().await;
        let mut holder =
            Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "sleep 1000 & echo $$ $!; wait"]);
        let line = holder.line().await;
        let command: Vec<i32> = line.split(' ').map(|id| id.parse().unwrap()).collect();
        assert!(command.iter().all(|process| is_alive(*process)));
        let next = Run::start(&servers(&server), ["lock", "/a", "--", "echo", "next"]);
        let killed = Instant::now();
        holder.signal(Signal::KILL);
        for process in command {
            until_dead(process).await;
        }
        let died = killed.elapsed();
        assert_eq!(next.end().await.stdout, ["next"]);
        let freed = killed.elapsed();
        println!("command dead after {died:.1?}, next holder after {freed:.1?}");
        // Session timeout, two ticks of the servers, and time for a busy machine.
        assert!(freed < Duration::from_secs(6), "{freed:?}");
    }

    async fn a_command_is_killed_before_the_next_holder_starts_while_docent_is_stopped(backend: Backend) {
        let server = backend.start().await;
        let script = "trap '' TERM; sleep 1000 & echo $$ $!; wait";
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", script]);
        let line = holder.line().await;
        let command: Vec<i32> = line.split(' ').map(|id| id.parse().unwrap()).collect();
        assert!(command.iter().all(|process| is_alive(*process)));
        let next = Run::start(&servers(&server), ["lock", "/a", "--", "date", "+%s.%N"]);
        holder.signal(Signal::STOP);
        let mut died = 0_f64;
        for process in command {
            died = died.max(time_of_death(process).await);
        }
        let started: f64 = next.end().await.stdout[0].parse().unwrap();
        println!("command dead at {died:.3}, next holder at {started:.3}");
        assert!(died < started);
        holder.signal(Signal::CONT);
        let ended = holder.end().await;
        assert_eq!(ended.code, 76, "{ended:?}");
    }

    async fn a_command_that_may_continue_without_its_lock_does_so_while_docent_is_stopped(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let script = format!("echo $$; while test ! -e {}; do sleep 0.02; done; exit 5", file.display());
        let words = ["lock", "/a", "--on-lost", "ignore", "--", "sh", "-c", &script];
        let mut holder = Run::start(&servers(&server), words);
        let command = holder.number().await;
        holder.signal(Signal::STOP);
        let next = Run::start(&servers(&server), ["lock", "/a", "--", "touch", file.to_str().unwrap()]);
        assert_eq!(next.end().await.code, 0);
        until_dead(command).await;
        holder.signal(Signal::CONT);
        assert_eq!(holder.end().await.code, 5);
    }

    async fn a_pause_shorter_than_the_lease_does_not_affect_the_command(backend: Backend) {
        let server = backend.start().await;
        let words = ["--session-timeout", "8s", "lock", "/a", "--on-lost", "kill"];
        let script = ["--", "sh", "-c", "echo ready; sleep 2; exit 5"];
        let mut holder = Run::start(&servers(&server), words.into_iter().chain(script));
        assert_eq!(holder.line().await, "ready");
        holder.signal(Signal::STOP);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        holder.signal(Signal::CONT);
        assert_eq!(holder.end().await.code, 5);
    }

    async fn a_pause_of_docent_and_its_keeper_beyond_the_lease_kills_the_command(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let signalled = folder.path().join("told");
        let script = format!("trap 'echo told > {}' TERM; echo $$; while :; do sleep 0.02; done", signalled.display());
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", &script]);
        let command = holder.number().await;
        let keeper = keeper_of(holder.id());
        send(keeper, Signal::STOP);
        holder.signal(Signal::STOP);
        // The next holder proves that the session, and therefore the lease, has ended.
        let next = Run::start(&servers(&server), ["lock", "/a", "--", "echo", "next"]);
        assert_eq!(next.end().await.stdout, ["next"]);
        assert!(is_alive(command), "nothing can end the command while both processes are stopped");
        let resumed = Instant::now();
        holder.signal(Signal::CONT);
        until_dead(command).await;
        println!("command dead {:.1?} after docent was continued", resumed.elapsed());
        let ended = holder.end().await;
        assert_eq!(ended.code, 76, "{ended:?}");
        assert!(ended.stderr.contains("was lost while \"sh\" ran"), "{}", ended.stderr);
        assert!(!signalled.exists(), "the time to stop must have passed: {:?}", fs::read_to_string(&signalled));
    }

    async fn a_command_that_stops_itself_is_waited_for(backend: Backend) {
        let server = backend.start().await;
        let mut holder =
            Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo $$; kill -STOP $$; echo on"]);
        let command = holder.number().await;
        let state = async || fs::read_to_string(format!("/proc/{command}/stat")).unwrap();
        eventually(PATIENCE, state, |stat| stat.contains(") T ")).await.unwrap();
        send(command, Signal::CONT);
        let ended = holder.end().await;
        assert_eq!((ended.code, ended.stdout), (0, vec!["on".to_owned()]));
    }
}

#[test]
fn a_command_is_not_started_after_its_deadline() {
    let own = std::process::id().to_string();
    for (kill_by, code, expected) in [("1", None, ""), ("18446744073709551615", Some(0), "on\n")] {
        let words = ["__run-command", &own, "-", "-", kill_by, "-", "-", "echo", "on"];
        let ended = std::process::Command::new(env!("CARGO_BIN_EXE_docent")).args(words).output().unwrap();
        assert_eq!((ended.status.code(), &*ended.stdout), (code, expected.as_bytes()), "{ended:?}");
    }
}
