//! Ends of `docent` that it cannot do anything about, and pauses.

use crate::process::{PATIENCE, is_alive, until_dead};
use crate::run::{Run, servers};
use docent_battery::{Backend, both_backends};
use docent_testkit::eventually;
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

both_backends! {
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
        // The session timeout, two ticks of the servers, and time for a busy machine.
        assert!(freed < Duration::from_secs(6), "{freed:?}");
    }

    async fn after_a_pause_for_longer_than_the_lease_the_command_is_killed_at_once(backend: Backend) {
        let server = backend.start().await;
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let script = format!("trap 'echo told > {}' TERM; echo $$; while :; do sleep 0.02; done", told.display());
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", &script]);
        let command = holder.number().await;
        holder.signal(Signal::STOP);
        // The next holder shows that the session, and the lease before it, is over.
        let next = Run::start(&servers(&server), ["lock", "/a", "--", "echo", "next"]);
        assert_eq!(next.end().await.stdout, ["next"]);
        assert!(is_alive(command), "nothing can end it while docent stands still");
        let resumed = Instant::now();
        holder.signal(Signal::CONT);
        until_dead(command).await;
        println!("command dead {:.1?} after docent went on", resumed.elapsed());
        let ended = holder.end().await;
        assert_eq!(ended.code, 76, "{ended:?}");
        assert!(ended.stderr.contains("was lost while \"sh\" ran"), "{}", ended.stderr);
        assert!(!told.exists(), "the time to stop was over: {:?}", fs::read_to_string(&told));
    }

    async fn a_command_that_stops_itself_is_waited_for(backend: Backend) {
        let server = backend.start().await;
        let mut holder =
            Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo $$; kill -STOP $$; echo on"]);
        let command = holder.number().await;
        let state = async || fs::read_to_string(format!("/proc/{command}/stat")).unwrap();
        eventually(PATIENCE, state, |stat| stat.contains(") T ")).await.unwrap();
        crate::process::send(command, Signal::CONT);
        let ended = holder.end().await;
        assert_eq!((ended.code, ended.stdout), (0, vec!["on".to_owned()]));
    }
}
