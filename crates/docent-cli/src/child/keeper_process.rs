//! Process that briefly outlives a killed `docent` to kill the processes of its command. The death signal of
//! Linux reaches only the command, not the processes that the command has started. This process also watches
//! the deadline, because a stalled `docent` cannot.

use super::alarm::readable_until;
use super::cgroup::Cgroup;
use super::keeper_state::KeeperState;
use super::members::{Bystanders, Mark, Members};
use nix::sys::signal::SigSet;
use nix::unistd::getppid;
use rustix::process::{Signal, kill_process, kill_process_group};
use rustix::stdio::{stdin, stdout};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// First argument that makes `docent` a keeper.
const MODE: &str = "__keep-group";

/// Name of a keeper, so that signals for all processes named `docent` miss it.
pub(super) const NAME: &str = "lock-keeper";

/// Exit code of a keeper that killed the command because its time had come.
pub(super) const OVERDUE: u8 = 76;

/// Number of looks in vain for further processes of a command whose docent has ended.
const LAST_LOOKS: u32 = 20;

/// Interval between these looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the arguments of a keeper.
pub(super) fn arguments(mark: Option<&Mark>, bystanders: &Bystanders) -> [OsString; 5] {
    let value = mark.map_or_else(String::new, |mark| mark.value.clone());
    let folder = mark.and_then(Mark::folder).map_or_else(OsString::new, OsString::from);
    let docent = std::process::id().to_string();
    [MODE.into(), docent.into(), value.into(), bystanders.argument().into(), folder]
}

/// Keeps a command if the arguments say so, until `docent` has ended or the time has come. Returns `None` for
/// the arguments of a user.
pub(crate) fn keep_if_invoked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    (arguments.next()? == MODE).then(|| keep(arguments).unwrap_or(ExitCode::FAILURE))
}

/// Command that a keeper keeps.
struct Kept {
    docent: i32,
    mark: Option<Mark>,
    bystanders: Bystanders,
    state: KeeperState,
}

fn keep(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    // A signal to all processes of a service also ends `docent`, whose command may take a while to end. The
    // keeper must survive until then.
    let _ = SigSet::all().thread_block();
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(&std::ffi::CString::new(NAME).ok()?);
    let docent = arguments.next()?.to_str()?.parse().ok()?;
    let value = arguments.next()?.into_string().ok().filter(|value| !value.is_empty());
    let bystanders = Bystanders::from_argument(arguments.next()?.to_str()?);
    let cgroup = arguments.next().filter(|folder| !folder.is_empty());
    let cgroup = cgroup.and_then(|folder| Cgroup::open(folder.into()).ok()).map(Arc::new);
    let mark = value.map(|value| Mark { value, cgroup });
    let mut input = File::from(stdin().try_clone_to_owned().ok()?);
    let state = KeeperState::of(File::from(stdout().try_clone_to_owned().ok()?));
    let kept = Kept { docent, mark, bystanders, state };
    let mut kill_by = kept.state.kill_by();
    loop {
        if readable_until(&input, kill_by) {
            match input.read(&mut [0; 64]) {
                // The time or the group has changed.
                Ok(1..) => kill_by = kept.state.kill_by(),
                Ok(0) | Err(_) => {
                    kept.kill();
                    return Some(ExitCode::SUCCESS);
                }
            }
            continue;
        }
        let latest = kept.state.kill_by();
        match kept.state.group() {
            _ if latest != kill_by => kill_by = latest,
            Some(_) => {
                kept.kill();
                return Some(ExitCode::from(OVERDUE));
            }
            // A command that starts from now on sees for itself that its time is over.
            None => kill_by = None,
        }
    }
}

impl Kept {
    /// Kills all processes of the command.
    fn kill(&self) {
        let cgroup = self.mark.as_ref().and_then(|mark| mark.cgroup.as_ref());
        cgroup.into_iter().for_each(|cgroup| cgroup.kill());
        let Some(group) = self.state.group() else { return };
        // All processes may have ended together with their leader.
        let _ = kill_process_group(group, Signal::KILL);
        let docent = (getppid().as_raw() == self.docent).then_some(self.docent);
        if docent.is_some() {
            // The leader may have left the group. Its number stays valid until `docent` collects its end,
            // which happens after the keeper has ended.
            let _ = kill_process(group, Signal::KILL);
        }
        let members = Members::seen_by_keeper(group, self.mark.as_ref(), docent, &self.bystanders);
        members.kill_outsiders();
        if docent.is_none() && self.mark.is_some() {
            // Only the mark leads to processes now, and one that is just being started shows none.
            let mut looks = 0;
            while looks < LAST_LOOKS {
                sleep(LOOK_INTERVAL);
                looks = if members.kill_outsiders() { 0 } else { looks + 1 };
            }
        }
    }
}
