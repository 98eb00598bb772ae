use super::tally::Tally;
use std::time::Duration;

/// Prints the outcome of many runs.
pub(crate) fn print(tally: &Tally, took: Duration) {
    let (simulated, wall) = (tally.count("simulated_ms") as f64 / 1e3, took.as_secs_f64());
    println!("{} runs, {} failed, in {wall:.1} s", tally.runs, tally.failures.len());
    let recipes: Vec<_> = tally.recipes.iter().map(|(recipe, runs)| format!("{runs} {recipe}")).collect();
    println!("recipes: {}", recipes.join(", "));
    let hours = simulated / 3600.0;
    println!(
        "{simulated:.0} s simulated ({hours:.1} h): {:.0} s per second of wall time",
        simulated / wall.max(0.001)
    );
    if let Some((slowest, run)) = &tally.slowest {
        println!("slowest: {run}, {:.1} s", slowest.as_secs_f64());
    }
    let (faults, others): (Vec<_>, Vec<_>) =
        tally.counts.iter().partition(|(name, _)| name.starts_with("fault."));
    let list = |counts: Vec<(&String, &u64)>| {
        let words: Vec<_> = counts
            .iter()
            .filter(|(name, _)| *name != "simulated_ms")
            .map(|(name, count)| format!("{count} {}", name.trim_start_matches("fault.")))
            .collect();
        words.join(", ")
    };
    println!("seen: {}", list(others));
    println!("faults: {}", list(faults));
    let failed: Vec<_> = tally.failures.iter().map(|(run, _)| run.as_str()).collect();
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
}
