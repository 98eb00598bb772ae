use crate::recipes::order::Answer;
use crate::samples::Samples;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Time for the bench to read its counts before the end of the order adds to them.
const PAUSE: Duration = Duration::from_millis(20);

/// Measured part of an order. Reports its beginning and end to the bench.
#[derive(Debug)]
pub(super) struct Measured {
    since: Instant,
    cpu: Duration,
}

impl Measured {
    pub(super) fn start() -> Self {
        println!("start");
        Self { since: Instant::now(), cpu: cpu() }
    }

    /// Returns the figures of `operations` operations. Waits until the bench has recorded their requests.
    pub(super) async fn stop(self, operations: u64) -> Answer {
        let (seconds, cpu) = (self.since.elapsed().as_secs_f64(), cpu() - self.cpu);
        println!("stop");
        tokio::time::sleep(PAUSE).await;
        let answer = Answer::default().with("ops", operations as f64).with("seconds", seconds);
        answer.with("cpu_micros", cpu.as_secs_f64() * 1e6)
    }
}

/// Adds the median and the 95th percentile of times in microseconds, as `PREFIXp50` and `PREFIXp95`.
pub(super) fn add_times(answer: &mut Answer, prefix: &str, times: &[Duration]) {
    let times: Samples = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    answer.set(&format!("{prefix}p50"), times.median());
    answer.set(&format!("{prefix}p95"), times.quantile(0.95));
}

/// Returns the CPU time of all threads of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}
