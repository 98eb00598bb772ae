//! Verbs that run commands, as real processes against both servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue must fail")]

mod arguments;
mod cgroup;
mod deadline;
mod dev;
mod elect;
mod escapes;
mod exit_codes;
mod held;
mod keeper;
mod killed;
mod matrix;
mod process;
mod run;
mod scarce;
mod signals;
mod stderr;
mod terminal;
mod waiting;
