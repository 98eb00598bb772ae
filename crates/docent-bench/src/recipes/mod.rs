//! Docent's recipes compared with Curator's and kazoo's, on one real server.

mod bench;
mod chart;
mod counts;
mod driver;
mod growth;
mod json;
mod load;
mod machine;
mod order;
mod ours;
mod peers;
mod plan;
mod populated;
mod ratio;
mod report;
mod results;
mod side;
mod stage;
mod target;
mod workload;
mod workloads;

pub(crate) use bench::run;
pub(crate) use ours::run as work;
pub(crate) use plan::Options;
