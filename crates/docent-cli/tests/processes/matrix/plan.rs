use super::fault::{FAULTS, Fault};
use super::kind::{KINDS, Kind, Shape};
use std::env;
use std::time::Duration;

/// Number of trials.
const TRIALS: &str = "DOCENT_TRIALS";

/// Seed of the first trial. Alone, it repeats one trial.
const FIRST_SEED: &str = "DOCENT_TRIAL_SEED";

/// Limit of the time between the start of a job and its fault, in milliseconds.
const LONGEST_DELAY: u64 = 400;

/// What happens in a trial. Everything follows from the seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) fault: Fault,
    pub(super) kind: &'static Kind,
    /// True if an ordinary user runs docent, for whom docent creates no control group.
    pub(super) is_ordinary: bool,
    /// Time between the start of the job and the fault.
    pub(super) delay: Duration,
}

impl Plan {
    /// Returns the plan of a seed. As many seeds in a row as there are faults, or kinds, have each of them.
    pub(super) fn of(seed: u64) -> Self {
        let (faults, kinds) = (FAULTS.len() as u64, KINDS.len() as u64);
        let pick = |number: u64| usize::try_from(number).unwrap();
        let fault = FAULTS[pick(seed % faults)];
        // Both numbers are prime to each other, so the pairs repeat only after all of them.
        let kind = &KINDS[pick(seed % kinds)];
        let random = mixed(seed);
        let is_ordinary = kind.shape == Shape::Foreign || random >> 63 == 1;
        Self { seed, fault, kind, is_ordinary, delay: Duration::from_millis(random % LONGEST_DELAY) }
    }
}

/// Returns the plans that the environment asks for, else a sample with each fault and each kind.
pub(super) fn plans() -> Vec<Plan> {
    let variable = |name| env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let (first, trials) = (variable(FIRST_SEED), variable(TRIALS));
    let sample = FAULTS.len().max(KINDS.len()) as u64;
    let trials = trials.unwrap_or(if first.is_some() { 1 } else { sample });
    let first = first.unwrap_or(0);
    (first..first + trials).map(Plan::of).collect()
}

/// Returns a number that looks random (`SplitMix64`).
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
