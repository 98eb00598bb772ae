use crate::cargo::{cargo, run as execute, without_optimisation};
use crate::packages;
use anyhow::Result;

/// Runs a bench with optimisations, on a real ZooKeeper unless the arguments request the embedded server.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if arguments.first().is_some_and(|bench| bench == "code-paths") {
        packages::ensure_valgrind()?;
        // The profiled build is not optimised, so functions are not inlined. The feature makes rustix use
        // libc, because Valgrind hides the memory page from which rustix would otherwise read clocks.
        let mut run = cargo("run --package docent-bench --features rustix/use-libc");
        without_optimisation(&mut run);
        return execute(run.arg("--").args(arguments));
    }
    let is_of = |benches: &[&str]| arguments.first().is_some_and(|bench| benches.contains(&&**bench));
    if !is_of(&["inspect", "console"]) && !arguments.iter().any(|argument| argument == "--embedded") {
        packages::ensure_zookeeper()?;
    }
    if is_of(&["recipes"]) {
        packages::ensure_curator()?;
        packages::ensure_python()?;
    }
    if is_of(&["command-line", "inspect", "console"]) {
        execute(&mut cargo("build --release --package docent-cli"))?;
    }
    execute(cargo("run --release --package docent-bench --").args(arguments))
}
