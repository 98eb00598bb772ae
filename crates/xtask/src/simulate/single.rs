use super::arguments::Arguments;
use super::binary::{Binary, finish};
use super::tally::wrong;
use anyhow::{Context, Result, bail};
use std::io::Write;

/// Performs one run and prints its output, which is its whole history if `trace` is set.
pub(crate) fn run(binary: &Binary, arguments: &Arguments, seed: u64, trace: bool) -> Result<()> {
    let recipe = arguments.recipe.as_deref().context("--seed needs --recipe")?;
    let mut command = binary.command(recipe, seed);
    if trace {
        command.arg("--trace");
    }
    let done = finish(&mut command)?;
    // The reader of a pipe may close it early.
    let _ = std::io::stdout().write_all(done.output.as_bytes());
    eprint!("{}", done.error);
    if wrong(&done).is_some() {
        bail!("seed {seed} failed");
    }
    Ok(())
}
