//! Processes that leave the process group of their command, and signals for all processes named `docent`.

use crate::process::{PATIENCE, is_alive, keepers_of, send, time_of_death, until_dead};
use crate::run::{Run, as_ordinary_user, command, run, servers, through};
use docent::{Client, Mutex};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::{Signal, geteuid};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use tokio::process::Command;

/// A job that prints its number and ignores requests to stop.
const JOB: &str = "trap '' TERM INT; echo $$; while :; do sleep 0.02; done";

/// Scripts that start the job in `$JOB` outside of their own process group.
const WAYS: [&str; 7] = [
    // `timeout` makes a group of its own.
    "timeout 600 bash -c \"$JOB\"; echo cleanup",
    "timeout 600 bash -c \"$JOB\" & wait",
    "setsid bash -c \"$JOB\"; echo cleanup",
    // Job control gives each job a group.
    "set -m; bash -c \"$JOB\" & wait",
    // A daemon, whose parent ends at once.
    "perl -MPOSIX -e 'fork and exit; setsid; fork and exit; exec \"bash\", \"-c\", $ENV{JOB}'; sleep 600",
    // With a name that was cut inside of a character.
    "setsid bash -c 'printf \"abcdefghijklmn\\303\" > /proc/$$/comm; '\"$JOB\" & wait",
    // Without docent's variables.
    "setsid env -i \"PATH=$PATH\" bash -c \"$JOB\" & wait",
];

fn job(connect: &str, way: &str) -> Run {
    let words = ["lock", "/a", "--kill-after", "300ms", "--", "bash", "-c", way];
    Run::of(command(connect, words).env("JOB", JOB))
}

/// Starts another holder, which prints the time of day, and waits until it is in the line.
async fn next_holder(connect: &str) -> Run {
    let next = Run::start(connect, ["lock", "/a", "--", "date", "+%s.%N"]);
    let client = Client::connect(connect).await.unwrap();
    let lock = Mutex::new(&client, "/a").unwrap();
    let line = async || lock.participants().await.unwrap().len();
    eventually(PATIENCE, line, |line| *line == 2).await.unwrap();
    client.close().await;
    next
}

/// Starts a job in this way behind `link`, and lets `end` take its lock away. Checks that the job is dead
/// before the next holder starts. Returns the run of the job.
async fn job_that_dies_in_time(connect: &str, link: &str, way: &str, end: impl FnOnce(&Run)) -> Run {
    let mut holder = job(link, way);
    let number = holder.number().await;
    let next = next_holder(connect).await;
    end(&holder);
    let died = time_of_death(number).await;
    let started: f64 = next.end().await.stdout[0].parse().unwrap();
    assert!(died < started, "{way}");
    holder
}

both_backends_in_real_time! {
    async fn no_job_outlives_the_lock_after_a_signal(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        for way in WAYS {
            job_that_dies_in_time(&connect, &connect, way, |holder| holder.signal(Signal::TERM)).await.end().await;
        }
    }

    async fn no_job_outlives_the_lock_behind_a_cut_link(backend: Backend) {
        let server = backend.start().await;
        for way in WAYS {
            let proxy = server.proxy().await;
            let link = through(&proxy, &server);
            let holder = job_that_dies_in_time(&servers(&server), &link, way, |_| proxy.blackhole()).await;
            assert_eq!(holder.end().await.code, 76, "{way}");
        }
    }

    async fn no_job_outlives_a_docent_that_is_stopped_or_killed(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        for way in WAYS {
            let holder = job_that_dies_in_time(&connect, &connect, way, |holder| holder.signal(Signal::STOP)).await;
            holder.signal(Signal::CONT);
            assert_eq!(holder.end().await.code, 76, "{way}");
        }
        // Only variables lead from a killed docent to a process in another session.
        for way in WAYS.into_iter().filter(|way| !way.contains("env -i")) {
            job_that_dies_in_time(&connect, &connect, way, |holder| holder.signal(Signal::KILL)).await;
        }
    }

    async fn a_process_that_the_command_leaves_elsewhere_is_ended_before_the_lock_is_released(backend: Backend) {
        let server = backend.start().await;
        for way in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let left = format!("mkfifo numbers; ({way}) > numbers & read number < numbers; echo $number; exit 5");
            let words = ["lock", "/a", "--kill-after", "300ms", "--", "bash", "-c", &left];
            let mut docent = command(&servers(&server), words);
            let mut holder = Run::of(docent.current_dir(folder.path()).env("JOB", JOB));
            let job = holder.number().await;
            let ended = holder.end().await;
            assert_eq!(ended.code, 5, "{way}: {ended:?}");
            assert!(!is_alive(job), "{way}");
        }
    }

    async fn a_kill_of_all_processes_named_docent_ends_the_whole_command(backend: Backend) {
        let server = backend.start().await;
        for way in ["bash -c \"$JOB\" & wait", WAYS[1]] {
            let words = ["lock", "/a", "--", "bash", "-c", way];
            let mut holder = Run::of(command(&servers(&server), words).env("JOB", JOB));
            let job = holder.number().await;
            let named = Command::new("pidof").arg("docent").output().await.unwrap();
            let named = String::from_utf8(named.stdout).unwrap();
            let named: Vec<i32> = named.split_whitespace().map(|number| number.parse().unwrap()).collect();
            assert!(named.contains(&holder.id()), "{named:?}");
            // Other tests run docent as well, so only what belongs to this one is killed.
            let keepers = keepers_of(holder.id());
            assert!(!keepers.is_empty() && !keepers.iter().any(|keeper| named.contains(keeper)), "{keepers:?}");
            holder.signal(Signal::KILL);
            until_dead(job).await;
        }
    }

    async fn a_command_of_a_docent_without_a_lock_still_belongs_to_the_outer_lock(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        assert_eq!(run(&connect, ["config", "set", "/limits", "1"]).await.code, 0);
        let docent = env!("CARGO_BIN_EXE_docent");
        let inner = [docent, "config", "watch", "/limits", "--", "bash", "-c", WAYS[1]];
        let words = ["lock", "/a", "--"].into_iter().chain(inner);
        let mut holder = Run::of(command(&connect, words).env("JOB", JOB));
        let job = holder.number().await;
        holder.signal(Signal::KILL);
        until_dead(job).await;
    }

    async fn an_adopted_orphan_that_has_ended_is_collected(backend: Backend) {
        let server = backend.start().await;
        let script = "(sh -c 'echo $$; exec sleep 0.1' &); exec sleep 600";
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", script]);
        let orphan = holder.number().await;
        let exists = async || Path::new(&format!("/proc/{orphan}")).exists();
        eventually(PATIENCE, exists, |exists| !exists).await.unwrap();
        holder.signal(Signal::TERM);
        assert_eq!(holder.end().await.code, 128 + 15);
    }

    async fn an_orphan_that_a_real_time_signal_ended_is_collected(backend: Backend) {
        let server = backend.start().await;
        let script = "(sh -c 'echo $$; kill -40 $$' &); (sh -c 'echo $$; exec sleep 0.1' &); exec sleep 600";
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", script]);
        for orphan in [holder.number().await, holder.number().await] {
            let exists = async || Path::new(&format!("/proc/{orphan}")).exists();
            eventually(PATIENCE, exists, |exists| !exists).await.unwrap();
        }
        holder.signal(Signal::TERM);
        assert_eq!(holder.end().await.code, 128 + 15);
    }

    async fn a_program_that_becomes_another_user_is_refused(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let as_user = |words: &[&str]| {
            Run::of(&mut as_ordinary_user(&folder.path().join("docent"), &command(&connect, words)))
        };
        // Every Debian has this program, whose owner is root.
        let refused = as_user(&["lock", "/a", "--", "su", "--version"]).end().await;
        assert!(refused.code == 126 && refused.stderr.contains("sudo docent lock"), "{refused:?}");
        let ignored = as_user(&["lock", "/a", "--on-lost", "ignore", "--", "su", "--version"]).end().await;
        assert_eq!(ignored.code, 0, "{ignored:?}");
        // Only root can make a program that becomes another user for good.
        if !geteuid().is_root() {
            return;
        }
        let perl = folder.path().join("other-user");
        fs::copy("/usr/bin/perl", &perl).unwrap();
        chown(&perl, Some(0), Some(0)).unwrap();
        fs::set_permissions(&perl, fs::Permissions::from_mode(0o4755)).unwrap();
        let script = format!("{} -e '$< = $> = 0; $| = 1; print \"$$\\n\"; sleep 600' & wait", perl.display());
        let mut holder = as_user(&["lock", "/a", "--kill-after", "200ms", "--", "sh", "-c", &script]);
        let job = holder.number().await;
        holder.signal(Signal::TERM);
        // The command has ended, but not all that it has started.
        let next = run(&connect, ["lock", "/a", "--wait", "2s", "--", "true"]).await;
        assert_eq!(next.code, 75, "{next:?}");
        assert!(is_alive(job));
        send(job, Signal::KILL);
        let ended = holder.end().await;
        assert!(ended.stderr.contains(&format!("cannot kill process {job} (other-user)")), "{ended:?}");
        assert_eq!(run(&connect, ["lock", "/a", "--wait", "5s", "--", "true"]).await.code, 0);
    }
}
