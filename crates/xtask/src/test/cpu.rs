use std::process::Child;
use std::time::Duration;

/// Waits until the process has ended. Returns the CPU time of the process and of the child processes that it
/// waited for, or zero on systems other than Linux.
#[cfg(target_os = "linux")]
pub(super) fn cpu_at_end(child: &Child) -> Duration {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    use nix::unistd::Pid;

    let has_ended = child.id().try_into().is_ok_and(|pid| {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(Pid::from_raw(pid)), flags).is_ok()
    });
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
    stat.ok().filter(|_| has_ended).and_then(|stat| cpu(&stat)).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn cpu_at_end(_child: &Child) -> Duration {
    Duration::ZERO
}

/// Returns the CPU time of a process and its children, from its line in `/proc`.
#[cfg(target_os = "linux")]
fn cpu(stat: &str) -> Option<Duration> {
    // Linux counts this time in hundredths of a second on all platforms.
    const TICK: Duration = Duration::from_millis(10);
    // The second field is a name in parentheses, which may contain blanks.
    let (_, fields) = stat.rsplit_once(") ")?;
    let times = fields.split(' ').skip(11).take(4);
    times.map(|time| time.parse::<u32>().ok()).sum::<Option<u32>>().map(|ticks| TICK * ticks)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_time_on_cores_is_that_of_a_process_and_its_children() {
        let stat = "42 (a (b) c) Z 1 2 3 4 5 6 7 8 9 10 150 50 20 30 20 0 1 0 99";
        assert_eq!(cpu(stat), Some(Duration::from_millis(2_500)));
        assert_eq!(cpu("42 (a) Z"), Some(Duration::ZERO));
        assert_eq!(cpu("42"), None);
    }
}
