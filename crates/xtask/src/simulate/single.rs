use super::arguments::Arguments;
use super::binary::{Binary, finish};
use super::tally::wrong;
use anyhow::{Result, bail};

/// One run with its output, which is its whole history if `trace` is set.
pub(crate) fn run(binary: &Binary, arguments: &Arguments, seed: u64, trace: bool) -> Result<()> {
    let mut command = binary.command(&arguments.recipe, seed);
    if trace {
        command.arg("--trace");
    }
    let done = finish(&mut command)?;
    print!("{}", done.output);
    eprint!("{}", done.error);
    if wrong(&done).is_some() {
        bail!("seed {seed} failed");
    }
    Ok(())
}
