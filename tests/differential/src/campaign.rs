use crate::compare::{Difference, compare};
use crate::coverage::Coverage;
use crate::generate::generate;
use crate::run::Record;
use crate::script::Step;
use crate::servers::Servers;
use crate::shrink::shrink;
use anyhow::{Context, Result};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::time::{Duration, Instant};

/// Number of scripts after which both servers are restarted, because everything that scripts leave behind
/// stays in their memory.
const ROUND: u64 = 4_000;
/// Pause between two progress lines.
const PROGRESS: Duration = Duration::from_secs(15);

/// The scripts of a run.
#[derive(Debug, Clone, Copy)]
pub struct Campaign {
    /// Seed of the first script. The seeds of the other scripts follow.
    pub seed: u64,
    /// Number of scripts.
    pub scripts: u64,
    /// Number of scripts that run at the same time.
    pub at_once: usize,
    /// Whether to compare the real server with itself.
    pub real_twice: bool,
    /// Number of failures after which no more scripts begin.
    pub failures: usize,
}

/// A script that shows a difference.
#[derive(Debug)]
pub struct Failure {
    /// Seed of the script.
    pub seed: u64,
    /// The shortest part of the script that was found to show a difference.
    pub script: Vec<Step>,
    /// The difference that this part shows.
    pub difference: Difference,
}

impl Campaign {
    /// Runs the scripts on dedicated servers, and shrinks the failures.
    ///
    /// # Errors
    /// Returns an error if a server cannot be started or does not reply.
    pub async fn run(&self) -> Result<Vec<Failure>> {
        let (started, mut shown) = (Instant::now(), Instant::now());
        let (mut failures, mut done, mut coverage) = (Vec::new(), 0, Coverage::default());
        while done < self.scripts && failures.len() < self.failures {
            let servers =
                if self.real_twice { Servers::start_real().await? } else { Servers::start().await? };
            let count = ROUND.min(self.scripts - done);
            let mut results = self.scripts_on(&servers, self.seed + done, count);
            while let Some((record, found)) = results.try_next().await? {
                done += 1;
                coverage.add(&record);
                failures.extend(found);
                if failures.len() >= self.failures {
                    break;
                }
                if shown.elapsed() >= PROGRESS {
                    shown = Instant::now();
                    let seconds = started.elapsed().as_secs();
                    println!("{done} of {} scripts, {} differ, {seconds} s", self.scripts, failures.len());
                }
            }
        }
        println!("{coverage}");
        println!("{done} scripts in {:.1} s, {} differ", started.elapsed().as_secs_f64(), failures.len());
        Ok(failures)
    }

    /// Runs the scripts on these servers until one fails.
    ///
    /// # Errors
    /// Returns an error if a server does not reply.
    pub async fn first_failure(&self, servers: &Servers) -> Result<Option<Failure>> {
        let mut results = self.scripts_on(servers, self.seed, self.scripts);
        while let Some((_, found)) = results.try_next().await? {
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Runs the scripts of these seeds on two servers.
    fn scripts_on<'a>(
        &self,
        servers: &'a Servers,
        first: u64,
        count: u64,
    ) -> impl stream::Stream<Item = Result<(Record, Option<Failure>)>> + Unpin + 'a {
        let runs = (first..first + count).map(move |seed| try_seed(servers, seed));
        Box::pin(stream::iter(runs).buffer_unordered(self.at_once))
    }
}

/// Runs the script of a seed. Returns the record of the real server, and the failure if there is one.
async fn try_seed(servers: &Servers, seed: u64) -> Result<(Record, Option<Failure>)> {
    let script = generate(seed);
    let (real, embedded) = servers.records(&script).await.with_context(|| format!("seed {seed}"))?;
    let Some(difference) = compare(&real, &embedded) else { return Ok((real, None)) };
    let (script, difference) = shrink(servers, script, difference).await;
    Ok((real, Some(Failure { seed, script, difference })))
}
