use docent::time::{BootClock, Clock, Timestamp};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::time::Duration;

/// Longest time that a timer is trusted where it may stand still while the machine is suspended.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until `input` can be read, or has ended, and no longer than until a time. True where it can be read,
/// also after that time.
pub(super) fn readable_until(input: &impl AsFd, until: Option<Timestamp>) -> bool {
    loop {
        let left = until.map(|until| until.since(BootClock.now()));
        let alarm = until.and_then(alarm);
        let mut sources = vec![PollFd::new(input, PollFlags::IN)];
        sources.extend(alarm.iter().map(|alarm| PollFd::new(alarm, PollFlags::IN)));
        let timeout = left.and_then(|left| left.min(LOOK).try_into().ok());
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) if !sources[0].revents().is_empty() => return true,
            Ok(_) if left.is_some_and(|left| left.is_zero()) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            // A read waits as well.
            Err(_) => return true,
        }
    }
}

/// A timer that goes off at a time also when the machine was suspended before.
#[cfg(target_os = "linux")]
fn alarm(at: Timestamp) -> Option<std::os::fd::OwnedFd> {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC).ok()?;
    // Zero would switch it off.
    let it_value = Duration::from_nanos(at.as_nanos().max(1)).try_into().ok()?;
    let time = Itimerspec { it_interval: Timespec::default(), it_value };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &time).ok()?;
    Some(timer)
}

#[cfg(not(target_os = "linux"))]
fn alarm(_: Timestamp) -> Option<std::os::fd::OwnedFd> {
    None
}
