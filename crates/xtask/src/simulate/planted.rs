use super::arguments::Arguments;
use super::binary::{Binary, Done, finish};
use super::tally::{Line, wrong};
use anyhow::{Result, ensure};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Run that caught a defect.
#[derive(Debug)]
struct Caught {
    seed: u64,
    invariant: String,
}

/// Runs every defect over at most `seeds` increasing seeds until it is caught, and prints a table.
///
/// # Errors
///
/// Fails if a defect was not caught.
pub(crate) fn run(arguments: &Arguments, seeds: u64) -> Result<()> {
    let binary = Binary::build_planted()?;
    let defects = binary.defects()?;
    let defects: Vec<_> = match &arguments.recipe {
        Some(only) => defects.into_iter().filter(|(_, recipe)| recipe == only).collect(),
        None => defects,
    };
    ensure!(!defects.is_empty(), "there are no planted defects");
    println!("| planted defect | recipe | caught by | seed | seeds tried |");
    println!("|---|---|---|---|---|");
    let mut survived = Vec::new();
    for (defect, recipe) in &defects {
        match hunt(&binary, arguments, (defect, recipe), seeds) {
            Some(Caught { seed, invariant }) => {
                println!("| {defect} | {recipe} | {invariant} | {seed} | {} |", seed - arguments.from + 1);
            }
            None => {
                println!("| {defect} | {recipe} | — | — | {seeds} |");
                survived.push(defect.as_str());
            }
        }
    }
    ensure!(survived.is_empty(), "not caught: {}", survived.join(", "));
    println!("all {} caught", defects.len());
    Ok(())
}

/// Returns the lowest seed that catches a defect.
fn hunt(binary: &Binary, arguments: &Arguments, defect: (&str, &str), seeds: u64) -> Option<Caught> {
    let (next, best) = (AtomicU64::new(arguments.from), Mutex::new(None::<Caught>));
    let best_seed = || best.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|caught| caught.seed);
    thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= arguments.from + seeds || best_seed().is_some_and(|best| best < seed) {
                        return;
                    }
                    let Some(caught) = try_seed(binary, defect, seed) else { continue };
                    let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
                    if best.as_ref().is_none_or(|best| caught.seed < best.seed) {
                        *best = Some(caught);
                    }
                }
            });
        }
    });
    best.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn try_seed(binary: &Binary, (defect, recipe): (&str, &str), seed: u64) -> Option<Caught> {
    let mut command = binary.command(recipe, seed);
    let done: Done = finish(command.args(["--planted", defect])).ok()?;
    wrong(&done)?;
    let broken = Line::last_of(&done.output).and_then(|line| line.broken().map(str::to_owned));
    let otherwise = if done.status.is_none() { "hang" } else { "crash" };
    Some(Caught { seed, invariant: broken.unwrap_or_else(|| otherwise.to_owned()) })
}
