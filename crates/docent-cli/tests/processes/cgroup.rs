//! Control groups of commands.

use crate::process::{PATIENCE, is_alive, keepers_of, send, until_dead};
use crate::run::{Run, as_ordinary_user, command, run, servers};
use docent_battery::{Backend, both_backends_in_real_time};
use docent_testkit::eventually;
use rustix::process::{Signal, geteuid};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tokio::process::Command;

/// A daemon that ignores requests to stop, and has none of docent's variables.
const UNMARKED: &str = "perl -MPOSIX -e 'fork and exit; setsid; fork and exit; exec @ARGV' env -i \"PATH=$PATH\" \
                        bash -c 'trap \"\" TERM INT; echo $$; while :; do sleep 0.02; done'; sleep 600";

/// A process outside of the group, with docent's variables.
const MARKED: &str = "setsid bash -c 'trap \"\" TERM INT; echo $$; while :; do sleep 0.02; done' & wait";

/// Returns the folder of the control group of this process, if this process may create groups there.
fn delegated() -> Option<PathBuf> {
    // Tests run in threads of this process, and two probes of one name would refuse each other.
    static DELEGATED: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let folder = Path::new(mount.split(' ').nth(1)?).join(own);
        let probe = folder.join(format!("probe-{}", std::process::id()));
        fs::create_dir(&probe).ok()?;
        fs::remove_dir(probe).unwrap();
        Some(folder)
    });
    DELEGATED.clone()
}

/// Returns the folder of the control group that docent has created for a process, or `None` if the process is
/// in another group.
fn folder_of(process: i32, delegated: &Path) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let name = Path::new(group).file_name()?.to_str()?;
    name.starts_with("docent-").then(|| delegated.join(name))
}

async fn until_removed(folder: &Path) {
    eventually(PATIENCE, async || folder.exists(), |exists| !exists).await.unwrap();
}

fn job(connect: &str, path: &str, script: &str) -> Run {
    // No test waits for the end of the session.
    Run::start(
        connect,
        ["--session-timeout", "30s", "lock", path, "--kill-after", "300ms", "--", "bash", "-c", script],
    )
}

both_backends_in_real_time! {
    async fn a_daemon_without_environment_dies_with_a_killed_docent(backend: Backend) {
        let server = backend.start().await;
        // Without permission to create groups, docent must find the processes without one.
        let delegated = delegated();
        println!("groups can be created in {delegated:?}");
        let mut holder = job(&servers(&server), "/a", if delegated.is_some() { UNMARKED } else { MARKED });
        let process = holder.number().await;
        let folder = delegated.map(|delegated| folder_of(process, &delegated).expect("docent must create a group"));
        holder.signal(Signal::KILL);
        until_dead(process).await;
        if let Some(folder) = folder {
            until_removed(&folder).await;
        }
    }

    async fn the_next_docent_ends_what_a_docent_and_its_keeper_have_left(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = job(&connect, "/a", UNMARKED);
        let process = holder.number().await;
        let folder = delegated().and_then(|delegated| folder_of(process, &delegated));
        let keepers = keepers_of(holder.id());
        send(holder.id(), Signal::KILL);
        keepers.iter().for_each(|keeper| send(*keeper, Signal::KILL));
        for process in [holder.id()].into_iter().chain(keepers) {
            until_dead(process).await;
        }
        // It has died when the command runs, under any lock. Docents of other tests may end it as well.
        let check = format!("grep -qs ') [^ZX] ' /proc/{process}/stat || echo dead");
        let next = run(&connect, ["lock", "/b", "--", "bash", "-c", &check]).await;
        let Some(folder) = folder else { return send(process, Signal::KILL) };
        assert_eq!(next.stdout, ["dead"]);
        until_removed(&folder).await;
    }

    async fn a_living_docent_keeps_its_group(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let mut holder = job(&connect, "/a", UNMARKED);
        let process = holder.number().await;
        let folder = delegated().and_then(|delegated| folder_of(process, &delegated));
        assert_eq!(run(&connect, ["lock", "/b", "--", "true"]).await.code, 0);
        assert!(is_alive(process) && folder.as_ref().is_none_or(|folder| folder.exists()));
        holder.signal(Signal::TERM);
        assert_eq!(holder.end().await.code, 128 + 15);
        assert!(!is_alive(process) && folder.is_none_or(|folder| !folder.exists()));
    }

    async fn the_group_of_an_inner_docent_is_part_of_the_outer_one(backend: Backend) {
        let server = backend.start().await;
        let connect = servers(&server);
        let script = format!("exec {} lock /inner -- bash -c '{}'", env!("CARGO_BIN_EXE_docent"), UNMARKED.replace('\'', "'\\''"));
        let mut holder = job(&connect, "/outer", &script);
        let process = holder.number().await;
        let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
        let nested = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().matches("/docent-").count();
        assert_eq!(nested, if delegated().is_some() { 2 } else { 0 }, "{groups}");
        holder.signal(Signal::KILL);
        if nested == 2 {
            until_dead(process).await;
        } else {
            send(process, Signal::KILL);
        }
    }

    async fn a_group_that_is_delegated_to_a_user_ends_processes_of_root(backend: Backend) {
        let server = backend.start().await;
        // Only root can delegate a group and make a program that becomes root.
        let delegated = delegated().filter(|_| geteuid().is_root());
        println!("a group is delegated in {delegated:?}");
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let perl = folder.path().join("become-root");
        fs::copy("/usr/bin/perl", &perl).unwrap();
        if delegated.is_some() {
            chown(&perl, Some(0), Some(0)).unwrap();
            fs::set_permissions(&perl, fs::Permissions::from_mode(0o4755)).unwrap();
        }
        let script = format!("{} -e '$< = $> = 0; $| = 1; print \"$$\\n\"; sleep 600' & wait", perl.display());
        let docent = command(&servers(&server), ["--session-timeout", "30s", "lock", "/a", "--kill-after", "200ms", "--", "sh", "-c", &script]);
        let docent = as_ordinary_user(&folder.path().join("docent"), &docent);
        // The name is the temporary folder's: the test of the other server runs in this process too.
        let group = delegated.map(|delegated| delegated.join(folder.path().file_name().unwrap()));
        let mut entering = Command::new("sh");
        entering.args(["-c", "test -z \"$0\" || echo $$ > \"$0/cgroup.procs\"; exec \"$@\""]);
        entering.arg(group.as_deref().unwrap_or(Path::new("")));
        entering.arg(docent.as_std().get_program()).args(docent.as_std().get_args()).env_clear();
        entering.envs(docent.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
        entering.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped()).kill_on_drop(true);
        entering.stderr(std::process::Stdio::piped());
        if let Some(group) = &group {
            fs::create_dir(group).unwrap();
            for path in [group.clone(), group.join("cgroup.procs"), group.join("cgroup.subtree_control")] {
                chown(path, Some(65534), Some(65534)).unwrap();
            }
        }
        let mut holder = Run::of(&mut entering);
        let process = holder.number().await;
        holder.signal(Signal::TERM);
        let ended = holder.end().await;
        assert!(ended.code == 128 + 15 && !is_alive(process), "{ended:?}");
        if let Some(group) = group {
            assert_eq!(ended.stderr, "");
            fs::remove_dir(group).unwrap();
        }
    }
}
