//! Trials of faults × kinds of commands. In each trial, a fault hits a holder of a lock, and the next holder
//! checks that no process of the previous one is alive when it starts.
//!
//! ```sh
//! DOCENT_TRIALS=200 cargo test -p docent-cli --test processes matrix::trials::embedded -- --nocapture
//! DOCENT_TRIAL_SEED=17 cargo test -p docent-cli --test processes matrix::trials::embedded -- --nocapture
//! ```
//!
//! The first command runs that many trials and prints a table. The second one repeats the trial of a seed;
//! with both variables, the trials start at that seed. Without them, a sample runs that has each fault and
//! each kind. 285 trials in a row have all pairs.

mod exposed;
mod fault;
mod kind;
mod plan;
mod table;
mod trial;
mod trials;
