use docent::time::{BootClock, Clock, Timestamp};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::time::Duration;

/// Longest time that a timer is trusted, because some timers pause while the machine is suspended.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Waits until `input` is readable or closed, at most until the given time. Returns true if `input` is
/// readable, even after that time.
pub(super) fn readable_until(input: &impl AsFd, until: Option<Timestamp>) -> bool {
    loop {
        let remaining = until.map(|until| until.since(BootClock.now()));
        let alarm = until.and_then(alarm);
        let mut sources = vec![PollFd::new(input, PollFlags::IN)];
        sources.extend(alarm.iter().map(|alarm| PollFd::new(alarm, PollFlags::IN)));
        let timeout = remaining.and_then(|remaining| remaining.min(MAX_WAIT).try_into().ok());
        match poll(&mut sources, timeout.as_ref()) {
            Ok(_) if !sources[0].revents().is_empty() => return true,
            Ok(_) if remaining.is_some_and(|remaining| remaining.is_zero()) => return false,
            Ok(_) | Err(Errno::INTR) => {}
            // Let the caller's read wait instead.
            Err(_) => return true,
        }
    }
}

/// Creates a timer that fires at an absolute time, even if the machine was suspended before.
#[cfg(target_os = "linux")]
fn alarm(at: Timestamp) -> Option<std::os::fd::OwnedFd> {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC).ok()?;
    // Zero would disarm the timer.
    let it_value = Duration::from_nanos(at.as_nanos().max(1)).try_into().ok()?;
    let time = Itimerspec { it_interval: Timespec::default(), it_value };
    timerfd_settime(&timer, TimerfdTimerFlags::ABSTIME, &time).ok()?;
    Some(timer)
}

#[cfg(not(target_os = "linux"))]
fn alarm(_: Timestamp) -> Option<std::os::fd::OwnedFd> {
    None
}
