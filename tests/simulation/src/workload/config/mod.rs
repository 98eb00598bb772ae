//! Values that are published, followed and counted.

mod publish;
mod subscribe;
mod workload;

pub(super) use workload::ConfigWorkload;
