use super::exposed::{Exposure, exposure};
use super::fault::Target;
use super::kind::{DAEMON, JOB, ROOT, Shape};
use super::plan::Plan;
use crate::process::{PATIENCE, holders_of, is_alive, send_if_alive, until_dead};
use crate::run::{Run, as_ordinary_user, command, servers, through};
use docent::{Client, Mutex};
use docent_battery::TestServer;
use docent_testkit::eventually;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Signal, geteuid};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Maximum number of attempts to start a trial.
const MAX_ATTEMPTS: u32 = 5;

/// Wait of the next holder. Shorter if the previous holder is expected to keep the lock.
const WAIT: &str = "90s";
const WAIT_IN_VAIN: &str = "6s";

/// Result of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No process of the previous holder was alive when the next one started.
    Clean,
    /// A process was alive, but only briefly, as the README says.
    Brief,
    /// A process had escaped, as the README says.
    Escape,
    /// A process was alive although the README promises that none is.
    Overlap,
    /// The previous holder kept the lock, because it could not kill a process.
    Refused,
    /// The previous holder kept the lock.
    Kept,
}

/// The check of the next holder: a process of the previous one has the file open, and therefore locked.
const CHECK: &str = "exec 9<held; flock --exclusive --nonblock 9 && echo free || echo overlap";

/// Runs a trial. `copy` is a copy of docent that every user may run.
pub(super) async fn run(plan: Plan, server: &TestServer, copy: &Path) -> Outcome {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(outcome) = attempt(plan, server, copy).await {
            return outcome;
        }
    }
    panic!("{plan:?}: no job starts before its session ends");
}

/// Returns `None` if the machine was too slow to keep the session until the job has started.
async fn attempt(plan: Plan, server: &TestServer, copy: &Path) -> Option<Outcome> {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let proxy = server.proxy().await;
    let client = Client::connect(servers(server)).await.unwrap();
    let path = format!("/trial-{}", plan.seed);
    let mut holder = start(plan, &path, folder.path(), copy, &through(&proxy, server));
    let command = holder.next_line().await?.parse().unwrap();
    assert_eq!(holder.next_line().await?, "ready");
    let group = fs::read_to_string(format!("/proc/{command}/cgroup")).unwrap_or_default();
    let has_group = group.contains("/docent-");
    let node = node_of_holder(&client, &path).await;
    let next = next(plan, &path, folder.path(), server);
    let lock = Mutex::new(&client, &path).unwrap();
    // A command that has ended meanwhile releases the lock.
    let is_ready = async || {
        lock.participants().await.unwrap().len() == 2 || !is_alive(holder.id()) || !is_alive(next.id())
    };
    eventually(PATIENCE, is_ready, |ready| *ready).await.unwrap();
    sleep(plan.delay).await;
    let docent = holder.id();
    plan.fault.hit(&Target { docent, command, proxy: &proxy, server, client: &client, node }).await;
    let ended = next.end().await;
    let outcome = match (ended.code, ended.stdout.first().map(String::as_str)) {
        // On a slow machine, the next holder may lose the lock as well, but only after its check.
        (0 | 76, Some("free")) => Outcome::Clean,
        (0 | 76, Some("overlap")) => match exposure(plan.fault, plan.kind.shape, has_group) {
            Exposure::None => Outcome::Overlap,
            Exposure::Brief => Outcome::Brief,
            Exposure::Escape => Outcome::Escape,
        },
        (75, _) if plan.kind.shape == Shape::Foreign => Outcome::Refused,
        (75, _) => Outcome::Kept,
        _ => panic!("{plan:?}: {ended:?}"),
    };
    plan.fault.end(&holder);
    let mut outcome = outcome;
    if outcome == Outcome::Brief {
        let is_held = async || is_locked(&folder.path().join("held"));
        if eventually(PATIENCE, is_held, |held| !held).await.is_err() {
            outcome = Outcome::Overlap;
        }
    }
    end_rest(folder.path(), docent).await;
    client.close().await;
    Some(outcome)
}

/// Returns the node of the only participant, or an empty path if the lock is free already.
async fn node_of_holder(client: &Client, path: &str) -> String {
    let line = Mutex::new(client, path).unwrap().participants().await.unwrap();
    line.first().map(|holder| format!("{path}/{}", holder.name)).unwrap_or_default()
}

fn start(plan: Plan, path: &str, folder: &Path, copy: &Path, connect: &str) -> Run {
    let script = format!("exec 9>>held; flock --shared 9; echo $$; {}", plan.kind.script);
    let words = ["lock", path, "--kill-after", "300ms", "--", "bash", "-c", &script];
    let mut docent = command(connect, words);
    if plan.is_ordinary {
        docent = as_ordinary_user(copy, &docent);
    }
    docent.current_dir(folder).env("JOB", JOB).env("DAEMON", DAEMON).env("ROOT", ROOT);
    docent.env("DOCENT", copy).env("BECOME_ROOT", become_root(folder));
    Run::of(&mut docent)
}

/// Creates a perl that can become root, if this process is root.
fn become_root(folder: &Path) -> PathBuf {
    let perl = folder.join("become-root");
    fs::copy("/usr/bin/perl", &perl).unwrap();
    if geteuid().is_root() {
        chown(&perl, Some(0), Some(0)).unwrap();
        fs::set_permissions(&perl, fs::Permissions::from_mode(0o4755)).unwrap();
    }
    perl
}

fn next(plan: Plan, path: &str, folder: &Path, server: &TestServer) -> Run {
    let is_in_vain = plan.kind.shape == Shape::Foreign && geteuid().is_root();
    let wait = if is_in_vain { WAIT_IN_VAIN } else { WAIT };
    // A slow machine must not take the lock of the check away.
    let words = ["--session-timeout", "10s", "lock", path, "--wait", wait, "--", "bash", "-c", CHECK];
    Run::of(command(&servers(server), words).current_dir(folder))
}

/// Kills processes that have survived a trial, and waits for the end of docent.
async fn end_rest(folder: &Path, docent: i32) {
    let file = folder.join("held");
    let kill = move || {
        let begun = Instant::now();
        while is_locked(&file) {
            holders_of(&file).for_each(|process| send_if_alive(process, Signal::KILL));
            assert!(begun.elapsed() < PATIENCE, "{file:?} is still open");
        }
    };
    // The servers run on this thread.
    spawn_blocking(kill).await.unwrap();
    until_dead(docent).await;
}

/// Returns true if a process of a holder is alive: it has this file open, and therefore locked.
fn is_locked(file: &Path) -> bool {
    let file = fs::File::open(file).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).is_err()
}
