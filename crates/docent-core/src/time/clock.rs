//! Time for leases: a clock that keeps running while the machine sleeps.

use std::fmt;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep};

/// A point in time of a [`Clock`]. Only the distance between two timestamps has a meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the point `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is not earlier.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl std::ops::Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// Source of the time on which leases rest. It must keep running while the machine is suspended: a clock that
/// stops would make a guard trust a lease that ended long ago.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the current time. Never less than what an earlier call returned.
    fn now(&self) -> Timestamp;

    /// Returns the time of day, for times that other processes compare with theirs, such as the earliest
    /// delivery time of a queue item. It may be set back. No lease depends on it.
    fn time_of_day(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// The default clock: time since boot, including suspend (`CLOCK_BOOTTIME`; `CLOCK_MONOTONIC` on systems
/// without it).
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Timestamp {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let id = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(id);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        Timestamp(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }
}

/// Tokio's clock, which tests can pause and a simulation can drive.
///
/// Its time of day is that of its creation, plus the time that has passed on tokio's clock since.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    origin: Instant,
    created: SystemTime,
}

impl TokioClock {
    /// Creates a clock that starts at one day, so that no lease starts at zero.
    pub fn new() -> Self {
        Self { origin: Instant::now(), created: SystemTime::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Timestamp(0) + A_DAY + self.origin.elapsed()
    }

    fn time_of_day(&self) -> SystemTime {
        self.created + self.origin.elapsed()
    }
}

/// Longest time for which a timer is trusted, because timers stop while the machine is suspended.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Waits until `clock` has reached `deadline`. Checks the clock every second, because timers stop while the
/// machine is suspended.
pub(crate) async fn sleep_until(clock: &dyn Clock, deadline: Timestamp) {
    loop {
        let left = deadline.since(clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(CHECK_INTERVAL)).await;
    }
}

/// A timer for a deadline that changes often, and mostly to a later time. It is set again only if it would
/// fire too late, or has fired too early.
#[derive(Debug, Default)]
pub(crate) struct DeadlineTimer {
    timer: Option<Timer>,
}

#[derive(Debug)]
struct Timer {
    sleep: Pin<Box<Sleep>>,
    rings_at: Timestamp,
    /// Waker of the task that polled the timer last.
    waker: Waker,
}

impl DeadlineTimer {
    /// Returns ready when `clock`, whose current time is `now`, has reached `deadline`; never if there is
    /// none. Like [`sleep_until`], it does not trust its timer for long.
    pub(crate) fn poll_by(
        &mut self,
        cx: &mut Context<'_>,
        clock: &dyn Clock,
        mut now: Timestamp,
        deadline: Option<Timestamp>,
    ) -> Poll<()> {
        let Some(deadline) = deadline else { return Poll::Pending };
        while now < deadline {
            let latest = deadline.min(now + CHECK_INTERVAL);
            if self.is_set(cx, now, latest) || self.set(cx, now, latest).is_pending() {
                return Poll::Pending;
            }
            now = clock.now();
        }
        Poll::Ready(())
    }

    /// Returns true if the timer is set and wakes this task by `latest`.
    fn is_set(&self, cx: &Context<'_>, now: Timestamp, latest: Timestamp) -> bool {
        self.timer.as_ref().is_some_and(|timer| {
            let in_time = timer.rings_at > now && timer.rings_at <= latest;
            in_time && !timer.sleep.is_elapsed() && timer.waker.will_wake(cx.waker())
        })
    }

    fn set(&mut self, cx: &mut Context<'_>, now: Timestamp, rings_at: Timestamp) -> Poll<()> {
        let at = Instant::now() + rings_at.since(now);
        let mut sleep = match self.timer.take() {
            Some(mut timer) => {
                timer.sleep.as_mut().reset(at);
                timer.sleep
            }
            None => Box::pin(tokio::time::sleep_until(at)),
        };
        // Polled outside of the task's coop budget: without budget the timer would not be polled, and an
        // unpolled timer wakes no task.
        let poll = pin!(unconstrained(sleep.as_mut())).poll(cx);
        self.timer = Some(Timer { sleep, rings_at, waker: cx.waker().clone() });
        poll
    }
}

// Ends of timeouts of any length.

/// Practically never: a timeout beyond the range of the clock has no end.
const A_CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Returns the time `duration` after `now`, including durations that the clock cannot represent.
pub fn after(now: Instant, duration: Duration) -> Instant {
    now + duration.min(A_CENTURY)
}

/// Returns the end of a `timeout` that starts now.
pub(crate) fn deadline(timeout: Duration) -> Instant {
    after(Instant::now(), timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_runs_forward() {
        let earlier = BootClock.now();
        assert!(BootClock.now() >= earlier);
    }

    #[test]
    fn arithmetic_saturates() {
        let end = Timestamp::from_nanos(u64::MAX);
        assert_eq!(end + Duration::MAX, end);
        assert_eq!(Timestamp::default() - Duration::MAX, Timestamp::default());
        assert_eq!(Timestamp::default().since(end), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_rings_at_its_deadline_wherever_that_was_moved() {
        let (clock, mut alarm) = (TokioClock::new(), DeadlineTimer::default());
        let start = clock.now();
        let at = |seconds| Some(start + Duration::from_secs(seconds));
        for (first, then) in [(5, 10), (20, 12), (13, 13)] {
            let early =
                std::future::poll_fn(|cx| Poll::Ready(alarm.poll_by(cx, &clock, clock.now(), at(first))))
                    .await;
            assert!(early.is_pending());
            std::future::poll_fn(|cx| alarm.poll_by(cx, &clock, clock.now(), at(then))).await;
            let late = clock.now().since(start + Duration::from_secs(then));
            assert!(Some(clock.now()) >= at(then) && late < Duration::from_millis(5), "{late:?}");
        }
        let never =
            std::future::poll_fn(|cx| Poll::Ready(alarm.poll_by(cx, &clock, clock.now(), None))).await;
        assert!(never.is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_wakes_a_task_that_has_used_up_its_budget() {
        let (clock, mut alarm) = (TokioClock::new(), DeadlineTimer::default());
        let deadline = clock.now() + Duration::from_secs(5);
        let rung = std::future::poll_fn(|cx| {
            while tokio::task::coop::has_budget_remaining() {
                let _ = tokio::task::coop::poll_proceed(cx).map(|coop| coop.made_progress());
            }
            alarm.poll_by(cx, &clock, clock.now(), Some(deadline))
        });
        // The next wake-up, for any reason, finds that the deadline has passed.
        tokio::time::timeout(Duration::from_secs(6), rung).await.unwrap();
        let late = clock.now().since(deadline);
        assert!(late < Duration::from_millis(5), "{late:?}");
    }
}
