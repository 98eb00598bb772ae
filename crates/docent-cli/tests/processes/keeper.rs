//! Commands that try to outlive `docent`, and keepers that end early.

use crate::process::{PATIENCE, is_alive, keepers_of, send, try_send, until_dead, until_stopped};
use crate::run::{Run, command, servers};
use docent::time::{BootClock, Clock, Timestamp};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::fs::OFlags;
use rustix::io::ioctl_fionread;
use rustix::process::Signal;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Program of a command that leaves its group and never ends on its own.
const LEAVER: &str = "$SIG{TERM} = sub { exit 7 }; setpgrp(0, getpgrp(getppid())) or die; $| = 1; \
                      print \"$$\\n\"; sleep 1 while 1";

/// Runs `docent` as the [`command`] says, started by another program that gets the docent command line after
/// its own arguments.
pub(crate) fn started_by(program: &str, words: &[&str], docent: &Command) -> Run {
    let docent = docent.as_std();
    let mut command = Command::new(program);
    // The first word is an argument of `env`, which also unblocks signals.
    command.args(words).args(docent.get_args().skip(1)).kill_on_drop(true);
    command.env_clear().envs(docent.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Run::of(&mut command)
}

both_backends_in_real_time! {
    async fn a_keeper_that_was_killed_is_replaced(backend: Backend) {
        let server = backend.start().await;
        let mut holder =
            Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "sleep 1000 & echo $$; echo $!; wait"]);
        let command = [holder.number().await, holder.number().await];
        let killed = keepers_of(holder.id())[0];
        send(killed, Signal::KILL);
        let keepers = async || keepers_of(holder.id());
        eventually(PATIENCE, keepers, |now| now.iter().any(|one| *one != killed)).await.unwrap();
        holder.signal(Signal::KILL);
        for process in command {
            until_dead(process).await;
        }
    }

    async fn a_command_whose_keepers_are_all_killed_is_killed_too(backend: Backend) {
        let server = backend.start().await;
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
        let (command, docent) = (holder.number().await, holder.id());
        let kill_all = async || {
            for keeper in keepers_of(docent) {
                // The process may have ended since it was listed.
                let _ = try_send(keeper, Signal::KILL);
            }
            is_alive(command)
        };
        eventually(PATIENCE, kill_all, |alive| !alive).await.unwrap();
        assert_eq!(holder.end().await.code, 128 + 9);
    }

    async fn a_new_keeper_knows_when_the_lease_ends(backend: Backend) {
        let server = backend.start().await;
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
        let command = holder.number().await;
        let killed = keepers_of(holder.id())[0];
        send(killed, Signal::KILL);
        let keepers = async || keepers_of(holder.id());
        eventually(PATIENCE, keepers, |now| now.iter().any(|one| *one != killed)).await.unwrap();
        holder.signal(Signal::STOP);
        until_dead(command).await;
        holder.signal(Signal::CONT);
        assert_eq!(holder.end().await.code, 76);
    }

    async fn a_command_that_leaves_its_process_group_is_still_signalled_and_killed(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut run = Run::start(&connect, ["lock", "/a", "--", "perl", "-e", LEAVER]);
        run.number().await;
        run.signal(Signal::TERM);
        assert_eq!(run.end().await.code, 7);
        let mut still = Run::start(&connect, ["lock", "/a", "--", "perl", "-e", LEAVER]);
        let command = still.number().await;
        still.signal(Signal::STOP);
        until_dead(command).await;
        still.signal(Signal::CONT);
        assert_eq!(still.end().await.code, 76);
    }

    async fn no_command_is_run_without_a_keeper(backend: Backend) {
        let server = backend.start().await;
        let script = "for one in $(cat /proc/$PPID/task/$PPID/children); do \
                    grep -q keep-group /proc/$one/cmdline && exit 0; done; exit 3";
        let mut codes = Vec::new();
        for files in 6..24 {
            let limited = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
            let words = ["lock", "/a", "--timeout", "2s", "--", "sh", "-c", script];
            let docent = command(&servers(&server), words);
            let ended = started_by("bash", &["-c", &limited], &docent).end().await;
            codes.push(ended.code);
        }
        assert!(!codes.contains(&3) && codes.contains(&126) && codes.contains(&0), "{codes:?}");
    }

    async fn a_keeper_that_was_stopped_until_its_pipe_was_full_leaves_a_healthy_command_alone(backend: Backend) {
        let server = backend.start().await;
        let mut holder = Run::start(&servers(&server), ["lock", "/a", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
        let command = holder.number().await;
        let keeper = keepers_of(holder.id())[0];
        let [input, state] = [0, 1].map(|number| PathBuf::from(format!("/proc/{keeper}/fd/{number}")));
        let state = File::open(state).unwrap();
        let kill_by = || {
            let mut nanos = [0; 8];
            state.read_exact_at(&mut nanos, 8).unwrap();
            Timestamp::from_nanos(u64::from_ne_bytes(nanos))
        };
        send(keeper, Signal::STOP);
        until_stopped(keeper).await;
        let stopped = kill_by();
        let mut pipe = File::options().write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&input).unwrap();
        while pipe.write(&[0; 4096]).is_ok() {}
        eventually(PATIENCE, async || BootClock.now(), |now| *now > stopped).await.unwrap();
        send(keeper, Signal::CONT);
        let input = File::open(&input).unwrap();
        let unread = async || ioctl_fionread(&input).unwrap();
        eventually(PATIENCE, unread, |unread| *unread == 0).await.unwrap();
        // The keeper still keeps the command: docent is stalled now.
        assert!(is_alive(command) && is_alive(keeper) && kill_by() > stopped);
        holder.signal(Signal::STOP);
        until_dead(command).await;
        holder.signal(Signal::CONT);
        assert_eq!(holder.end().await.code, 76);
    }

    async fn the_end_of_a_command_is_noticed_if_the_parent_blocks_sigchld(backend: Backend) {
        let server = backend.start().await;
        let docent = command(&servers(&server), ["lock", "/a", "--", "sh", "-c", "sleep 0.5; exit 5"]);
        let words = ["--default-signal", "--block-signal=CHLD"];
        let ended = started_by("env", &words, &docent).end().await;
        assert_eq!(ended.code, 5, "{ended:?}");
    }
}

#[tokio::test]
async fn a_keeper_kills_a_command_that_became_known_without_a_message() {
    // As when docent is stopped between the start of a command and its next step.
    let state = tempfile::tempfile().unwrap();
    state.set_len(16).unwrap();
    let kill_by = BootClock.now() + Duration::from_secs(2);
    state.write_all_at(&kill_by.as_nanos().to_ne_bytes(), 8).unwrap();
    let mut keeper = Command::new(env!("CARGO_BIN_EXE_docent"));
    keeper.args(["__keep-group", &std::process::id().to_string(), "", ""]).kill_on_drop(true);
    keeper.stdin(Stdio::piped()).stdout(state.try_clone().unwrap());
    let mut keeper = keeper.spawn().unwrap();
    let stat = format!("/proc/{}/stat", keeper.id().unwrap());
    let waits = async || std::fs::read_to_string(&stat).unwrap_or_default().contains("(lock-keeper) S ");
    eventually(PATIENCE, waits, |waits| *waits).await.unwrap();
    let mut command = Command::new("sleep").arg("1000").process_group(0).kill_on_drop(true).spawn().unwrap();
    state.write_all_at(&u64::from(command.id().unwrap()).to_ne_bytes(), 0).unwrap();
    let ended = tokio::time::timeout(PATIENCE, command.wait()).await.expect("the command must be killed");
    assert_eq!(ended.unwrap().signal(), Some(9));
    assert!(BootClock.now() >= kill_by);
    assert_eq!(keeper.wait().await.unwrap().code(), Some(76));
}
