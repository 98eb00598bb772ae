use super::arguments::{Arguments, Extent};
use super::binary::{Binary, Done, finish};
use super::tally::{Line, Tally};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often progress is shown.
const PROGRESS: Duration = Duration::from_secs(30);

/// Runs of many seeds, some at once.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    binary: &'a Binary,
    arguments: &'a Arguments,
    next: AtomicU64,
    tally: Mutex<(Tally, Instant)>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(binary: &'a Binary, arguments: &'a Arguments) -> Self {
        let tally = Mutex::new((Tally::default(), Instant::now()));
        Self { binary, arguments, next: AtomicU64::new(arguments.from), tally }
    }

    pub(crate) fn run(self, extent: Extent) -> Tally {
        thread::scope(|scope| {
            for _ in 0..self.arguments.jobs {
                scope.spawn(|| self.work(extent));
            }
        });
        self.tally.into_inner().unwrap_or_else(PoisonError::into_inner).0
    }

    fn work(&self, extent: Extent) {
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            let is_over = match extent {
                Extent::Seeds(seeds) => seed >= self.arguments.from.saturating_add(seeds),
                Extent::Until(end) => Instant::now() >= end,
            };
            if is_over {
                return;
            }
            self.add(seed, &self.run_seed(seed));
        }
    }

    fn run_seed(&self, seed: u64) -> Done {
        let mut done = self.run_once(seed);
        if self.arguments.twice {
            let again = self.run_once(seed);
            let hash = |done: &Done| Line::last_of(&done.output)?.hash().map(str::to_owned);
            let (first, second) = (hash(&done), hash(&again));
            if first.is_none() || first != second {
                let said = format!("hashes of two runs of one seed differ: {first:?} and {second:?}\n");
                done = Done { output: String::new(), error: said + &done.error, ..done };
            }
        }
        done
    }

    fn run_once(&self, seed: u64) -> Done {
        finish(&mut self.binary.command(&self.arguments.recipe, seed)).unwrap_or_else(|error| Done {
            output: String::new(),
            error: format!("{error:#}\n"),
            took: Duration::ZERO,
            status: None,
        })
    }

    fn add(&self, seed: u64, done: &Done) {
        let (tally, shown) = &mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = tally.failures.len();
        tally.add(seed, done);
        if let Some((seed, what)) = tally.failures.get(failures) {
            println!(
                "{what}\nagain: cargo xtask simulate --recipe {} --seed {seed} --trace",
                self.arguments.recipe
            );
        }
        if shown.elapsed() >= PROGRESS {
            *shown = Instant::now();
            println!("{} seeds, {} failed", tally.seeds, tally.failures.len());
        }
    }
}
