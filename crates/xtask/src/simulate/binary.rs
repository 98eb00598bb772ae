use crate::cargo::build_program;
use anyhow::{Context, Result};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of one run. A run that takes longer hangs: the longest take 90 s of CPU time, and more on a
/// busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// Interval between checks whether a run has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The simulation, built with optimisations.
#[derive(Debug)]
pub(crate) struct Binary(PathBuf);

/// Outcome of one process.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) output: String,
    pub(crate) error: String,
    pub(crate) took: Duration,
    /// `None` if the process was killed because it took too long.
    pub(crate) status: Option<ExitStatus>,
}

impl Binary {
    pub(crate) fn build() -> Result<Self> {
        build_program("docent-simulation", "simulation", false).map(Self)
    }

    /// Builds the simulation with all defects, of which each run chooses at most one.
    pub(crate) fn build_planted() -> Result<Self> {
        build_program("docent-simulation", "simulation", true).map(Self)
    }

    pub(crate) fn command(&self, recipe: &str, seed: u64) -> Command {
        let mut command = Command::new(&self.0);
        command.args(["--recipe", recipe, "--seed", &seed.to_string()]);
        command
    }

    /// Returns the names of all defects that can be planted, each with the recipe that reveals it.
    pub(crate) fn defects(&self) -> Result<Vec<(String, String)>> {
        let lines = self.list("--list-planted")?;
        let pair =
            |line: String| line.split_once(' ').map(|(name, recipe)| (name.to_owned(), recipe.to_owned()));
        lines
            .into_iter()
            .map(|line| pair(line).context("the simulation listed a defect without a recipe"))
            .collect()
    }

    /// Returns the names of all recipes.
    pub(crate) fn recipes(&self) -> Result<Vec<String>> {
        self.list("--list-recipes")
    }

    fn list(&self, argument: &str) -> Result<Vec<String>> {
        let output = Command::new(&self.0).arg(argument).output()?;
        Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
    }
}

/// Runs a process until it ends or reaches the time limit.
pub(crate) fn finish(command: &mut Command) -> Result<Done> {
    let started = Instant::now();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = spawned.with_context(|| format!("cannot run {command:?}"))?;
    let output = collect(child.stdout.take());
    let error = collect(child.stderr.take());
    let status = wait(&mut child, started + PATIENCE)?;
    let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    Ok(Done { output: text(output), error: text(error), took: started.elapsed(), status })
}

fn wait(child: &mut Child, end: Instant) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Reads a pipe to its end while the process runs, so the process never blocks on a full pipe.
fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // After an error, the output read so far is returned.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
