use super::arguments::{Arguments, Extent};
use super::binary::{Binary, Done, finish};
use super::tally::{Line, Tally};
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of progress reports.
const PROGRESS: Duration = Duration::from_secs(30);

/// Runs of many seeds, several at a time.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    binary: &'a Binary,
    arguments: &'a Arguments,
    /// Recipes that are run in turn, each with every seed.
    recipes: Vec<String>,
    next: AtomicU64,
    tally: Mutex<(Tally, Instant)>,
}

impl<'a> Batch<'a> {
    /// Creates a batch of the requested recipe, or of all recipes.
    ///
    /// # Errors
    ///
    /// Fails if the recipes cannot be listed.
    pub(crate) fn new(binary: &'a Binary, arguments: &'a Arguments) -> Result<Self> {
        let tally = Mutex::new((Tally::default(), Instant::now()));
        let recipes = match &arguments.recipe {
            Some(recipe) => vec![recipe.clone()],
            None => binary.recipes()?,
        };
        ensure!(!recipes.is_empty(), "there is no recipe to run");
        Ok(Self { binary, arguments, recipes, next: AtomicU64::new(0), tally })
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
            let run = self.next.fetch_add(1, Ordering::Relaxed);
            let recipes = self.recipes.len() as u64;
            let (seed, turn) = (self.arguments.from.saturating_add(run / recipes), run % recipes);
            let is_past = |seeds| seed >= self.arguments.from.saturating_add(seeds);
            let is_finished = match extent {
                Extent::Seeds(seeds) => is_past(seeds),
                Extent::Until(end) => Instant::now() >= end,
                Extent::SeedsUntil(seeds, end) => is_past(seeds) || Instant::now() >= end,
            };
            if is_finished {
                return;
            }
            let recipe = &self.recipes[turn as usize];
            self.add(recipe, seed, &self.run_seed(recipe, seed));
        }
    }

    fn run_seed(&self, recipe: &str, seed: u64) -> Done {
        let mut done = self.run_once(recipe, seed);
        if self.arguments.twice {
            let again = self.run_once(recipe, seed);
            let hash = |done: &Done| Line::last_of(&done.output)?.hash().map(str::to_owned);
            let (first, second) = (hash(&done), hash(&again));
            if first.is_none() || first != second {
                let message =
                    format!("the hashes of two runs of one seed differ: {first:?} and {second:?}\n");
                done = Done { output: String::new(), error: message + &done.error, ..done };
            }
        }
        done
    }

    fn run_once(&self, recipe: &str, seed: u64) -> Done {
        finish(&mut self.binary.command(recipe, seed)).unwrap_or_else(|error| Done {
            output: String::new(),
            error: format!("{error:#}\n"),
            took: Duration::ZERO,
            status: None,
        })
    }

    fn add(&self, recipe: &str, seed: u64, done: &Done) {
        let (tally, shown) = &mut *self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = tally.failures.len();
        tally.add(recipe, seed, done);
        if let Some((_, what)) = tally.failures.get(failures) {
            println!("{what}\nto repeat: cargo xtask simulate --recipe {recipe} --seed {seed} --trace");
        }
        if shown.elapsed() >= PROGRESS {
            *shown = Instant::now();
            println!("{} runs, {} failed", tally.runs, tally.failures.len());
        }
    }
}
