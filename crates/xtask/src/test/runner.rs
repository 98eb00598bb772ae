use super::job::{Done, Job};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Interval of reports about running jobs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Runs `jobs`, `at_once` of them at a time, starting with the longest. Calls `ended` for each job, which
/// returns the number of failures. Meanwhile it prints which jobs are running.
pub(super) fn run(mut jobs: Vec<Job>, at_once: usize, mut ended: impl FnMut(Done) -> u64) {
    jobs.sort_by_key(|job| std::cmp::Reverse(job.weight()));
    let (started, all) = (Instant::now(), jobs.iter().map(|job| job.tests).sum::<usize>());
    let waiting = Mutex::new(VecDeque::from(jobs));
    let running: Mutex<Vec<Job>> = Mutex::default();
    let begin = || {
        let job = lock(&waiting).pop_front()?;
        lock(&running).push(job.clone());
        Some(job)
    };
    let (sender, done) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once {
            let (sender, begin, running) = (sender.clone(), &begin, &running);
            scope.spawn(move || {
                while let Some(job) = begin() {
                    let done = job.run();
                    lock(running).retain(|other| other.log() != job.log());
                    // The receiver lives until all senders are dropped.
                    let _ = sender.send((job.tests, done));
                }
            });
        }
        drop(sender);
        let mut behind = Progress::default();
        loop {
            match done.recv_timeout(SIGN_OF_LIFE) {
                Ok((tests, done)) => {
                    behind.ended += tests;
                    behind.failed += ended(done);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let running = lock(&running).clone();
                    let seconds = started.elapsed().as_secs();
                    println!("{}", sign_of_life(seconds, &behind, all, &running));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    });
}

fn sign_of_life(seconds: u64, behind: &Progress, all: usize, running: &[Job]) -> String {
    let progress = |job: &Job| {
        let output = fs::read(job.log()).unwrap_or_default();
        Progress::of(&String::from_utf8_lossy(&output))
    };
    let each: Vec<_> = running.iter().map(|job| (job, progress(job))).collect();
    let ended = behind.ended + each.iter().map(|(_, progress)| progress.ended).sum::<usize>();
    let failed = behind.failed + each.iter().map(|(_, progress)| progress.failed).sum::<u64>();
    let running = each.iter().map(|(job, progress)| match job.tests {
        0 => job.name.to_string(),
        tests => format!("{} ({} of {tests}{})", job.name, progress.ended, over_a_minute(&progress.slow)),
    });
    let running: Vec<_> = running.collect();
    let of_all = if all > 0 { format!(" of {all}") } else { String::new() };
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("{seconds:6} s: {ended}{of_all} tests{failed}; running: {}", running.join(", "))
}

/// Number of tests of a binary that have ended so far.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    ended: usize,
    failed: u64,
    /// Tests that have been running for more than a minute.
    slow: Vec<String>,
}

impl Progress {
    fn of(output: &str) -> Self {
        let mut progress = Self::default();
        for line in output.lines() {
            let Some(line) = line.strip_prefix("test ") else { continue };
            if let Some(name) = line.strip_suffix(" has been running for over 60 seconds") {
                progress.slow.push(name.to_owned());
            } else if let Some((name, result)) = line.split_once(" ... ") {
                progress.ended += 1;
                progress.failed += u64::from(result.starts_with("FAILED"));
                progress.slow.retain(|slow| slow != name);
            }
        }
        progress
    }
}

fn over_a_minute(tests: &[String]) -> String {
    if tests.is_empty() { String::new() } else { format!("; over a minute: {}", tests.join(", ")) }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_run_once_and_those_that_take_longest_begin_first() {
        let job = |tests: usize| {
            let script = format!("echo out {tests}; echo err >&2; test {tests} != 2");
            Job::script(&format!("job of {tests}"), &script, tests)
        };
        let mut done = Vec::new();
        run(vec![job(1), job(3), job(2)], 1, |ended| {
            done.push(ended);
            0
        });
        let each = done.iter().map(|done| (&*done.output, done.status.as_ref().unwrap().success()));
        assert!(each.eq([("out 3\nerr\n", true), ("out 2\nerr\n", false), ("out 1\nerr\n", true)]));
    }

    #[test]
    fn a_progress_line_reports_each_job() {
        let output = "test a ... ok\ntest b has been running for over 60 seconds\n\
            test c has been running for over 60 seconds\ntest b ... FAILED\ntest d";
        let job = Job::script("far", &format!("echo '{output}'"), 9);
        job.run();
        let behind = Progress { ended: 3, failed: 1, slow: Vec::new() };
        let sign = sign_of_life(75, &behind, 20, &[job, Job::script("unknown", "", 0)]);
        assert_eq!(
            sign,
            "    75 s: 5 of 20 tests, 2 failed; running: far (2 of 9; over a minute: c), unknown"
        );
        assert_eq!(sign_of_life(5, &Progress::default(), 0, &[]), "     5 s: 0 tests; running: ");
    }
}
